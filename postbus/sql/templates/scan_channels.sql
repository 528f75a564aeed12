-- Looks at new messages of a partition, and takes the first of each channel that has no turn waiting, as many as its limits and its quantum leave. See
-- channel_statement for the arguments.
with scanned as materialized (
    select
        l.seq,
        {channel} as channel,
        coalesce(l.expires_at <= $9, false) as is_expired,
        ($1.filter_key_regex is null or coalesce(l.key ~ $1.filter_key_regex, false))
        and ($1.filter_headers is null or coalesce(l.headers @> $1.filter_headers, false))
        and ($1.filter_headers_not is null or not coalesce(l.headers @> any ($1.filter_headers_not), false))
        and {matches_data} as matches
    from {log_table} as l
    where l.partition = $2
        and l.seq > $3
        and l.seq <= $4
    order by l.seq
    limit $5
),
flow as materialized (
    select s.channel, min(s.seq) as first_seq
    from scanned as s
    where s.matches
    group by s.channel
),
-- Those with a turn are passed over: they come when it is their turn.
fresh as materialized (
    select f.*
    from flow as f
    -- Not as a join, which might read all turns of the partition. Mostly there are none at all.
    where not exists (select from postbus_data.turn as t where t.consumer_id = $1.id and t.epoch = $1.epoch and t.partition = $2)
        or (
            select t.n
            from postbus_data.turn as t
            where t.consumer_id = $1.id
                and t.epoch = $1.epoch
                and t.partition = $2
                and t.channel = f.channel
            order by t.n desc
            limit 1
        ) is null
),
roomy as materialized (
    select r.channel, r.first_seq, coalesce((r.here).room, 2147483647) as room, case when $10 then (r.here).quantum else $11 end as quantum
    from (
        select f.channel, f.first_seq, case when $10 then postbus_data.channel_room($1, f.channel, $8, $11, $10, $9) end as here from fresh as f offset 0
    ) as r
),
ranked as materialized (
    select
        s.seq, s.channel, r.room, r.quantum, r.first_seq,
        row_number() over (partition by s.channel order by s.seq) <= least(r.room, r.quantum) as may_go
    from scanned as s
    join roomy as r on r.channel = s.channel
    where s.matches
        and not s.is_expired
),
taken as materialized (
    select r.seq, r.channel
    from ranked as r
    where r.may_go
    order by r.seq
    limit $6
),
edge as materialized (
    select
        case
            when (select count(*) from taken) = $6 then (select max(t.seq) from taken as t)
            when (select count(*) from scanned) < $5 then $4
            else (select max(s.seq) from scanned as s)
        end as seq
),
-- What is left of a channel that had as much as the lightest has in a turn, up to the edge or behind it, comes in turns; without a quantum only what had
-- to stay behind.
late as materialized (
    select r.channel, coalesce(max(r.seq) filter (where t.seq is not null), min(r.first_seq) - 1) as after_seq
    from ranked as r
    cross join edge as e
    left join taken as t on t.seq = r.seq
    group by r.channel
    having bool_or(not r.may_go and r.seq <= e.seq)
        or (
            count(t.seq) >= $11
            and (
                count(*) > count(t.seq)
                or exists (
                    select
                    from {log_table} as l
                    where {channel} = r.channel
                        and l.seq > max(r.seq)
                        and l.seq <= $4
                )
            )
        )
)
select
    (select array_agg(t.seq order by t.seq) from taken as t),
    (select array_agg(t.channel order by t.seq) from taken as t),
    (
        select array_agg(s.seq order by s.seq)
        from scanned as s
        join roomy as r on r.channel = s.channel
        where s.matches
            and s.is_expired
            and s.seq <= e.seq
            and not exists (select from late as t where t.channel = s.channel)
    ),
    e.seq,
    e.seq >= $4,
    (select count(*)::integer from scanned),
    (select array_agg(t.channel order by t.after_seq, t.channel) from late as t),
    (select array_agg(t.after_seq order by t.after_seq, t.channel) from late as t)
from edge as e

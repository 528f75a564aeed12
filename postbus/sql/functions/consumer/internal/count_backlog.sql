create or replace function postbus_data.count_backlog(
    consumer_id integer,
    out backlog bigint,
    out is_exact boolean,
    out unread bigint,
    out in_flight bigint,
    out redelivering bigint,
    out waiting bigint,
    out dead bigint,
    out oldest_unread_at timestamptz,
    out oldest_in_flight_at timestamptz,
    out timed_out bigint,
    out by_priority jsonb
)
language plpgsql
stable
set enable_seqscan = off
set enable_bitmapscan = off
set search_path = pg_catalog, pg_temp
as $$
/*
What a consumer has not finished: backlog = unread + in_flight + waiting.

backlog              published and neither acked nor dead.
is_exact             each was counted. Otherwise unread is an estimate, of more than 1,000 messages, or of a consumer that filters by data:
                     such a filter can take any time, so it is not evaluated; or 10,000 or more are waiting.
unread               not delivered yet. Messages that the filter, their time to live or a newer version of their key rules out do not count.
in_flight            leased and not settled; redelivering is how many of them were delivered before.
waiting              failed, due for redelivery, or parked behind their key; 10,000 means that many or more.
dead                 given up; 10,000 means that many or more.
by_priority          by priority in use, how many are unread or waiting: as exact as these, each for itself.
timed_out            how many deliveries have ended because their lease expired, since the last seek.

Stable, so it has the snapshot of the query that calls it: a message that moves from one state to another meanwhile is counted once.
*/
#variable_conflict use_variable
declare
    reader postbus_data.consumer := (select c from postbus_data.consumer as c where c.id = consumer_id);
    source postbus_data.stream := (select s from postbus_data.stream as s where s.id = reader.stream_id);
    partitions integer[];
    after_seqs bigint[];
    conditions text[] := array['coalesce(l.expires_at > clock_timestamp(), true)'];
    parts integer[];
    replaced integer;
    lane integer;
    here bigint;
begin
    select array_agg(p.n order by p.n), array_agg(greatest(coalesce(place.read_to_seq, reader.start_after), source.start_seq - 1) order by p.n)
    into partitions, after_seqs
    from postbus_data.unread_partitions(reader) as p (n)
    left join lateral (
        select r.read_to_seq
        from postbus_data.position as r
        where r.consumer_id = reader.id
            and r.epoch = reader.epoch
            and r.partition = p.n
        order by r.read_to_seq desc
        limit 1
    ) as place on true;
    if reader.filter_key_regex is not null then
        conditions := conditions || 'coalesce(l.key ~ ($4).filter_key_regex, false)'::text;
    end if;
    if reader.filter_headers is not null then
        conditions := conditions || 'coalesce(l.headers @> ($4).filter_headers, false)'::text;
    end if;
    if reader.filter_headers_not is not null then
        conditions := conditions || 'not coalesce(l.headers @> any (($4).filter_headers_not), false)'::text;
    end if;
    if source.one_message_per_key then
        conditions := conditions
            || format('exists (select from postbus_data.state_%s as t where t.key = l.key and t.seq = l.seq)', source.id);
    end if;
    select c.message_count, c.is_exact and (reader.filter_data is null or c.message_count = 0), c.oldest_at
    into unread, is_exact, oldest_unread_at
    from postbus_data.count_messages(source.id, partitions, after_seqs, array_to_string(conditions, ' and '), reader) as c;

    if reader.by_channel then
        -- What the positions have passed over.
        select unread + c.lagging, is_exact and c.is_exact into unread, is_exact from postbus_data.count_lagging(reader) as c;
    end if;

    select
        coalesce(sum(s.left_count), 0), coalesce(sum(s.left_count) filter (where l.attempts is not null), 0),
        min(l.received_at) filter (where s.left_count > 0)
    into in_flight, redelivering, oldest_in_flight_at
    from postbus_data.lease as l
    cross join lateral (
        select cardinality(l.seqs) - count(*) as left_count
        from postbus_data.settled as s
        where s.token = l.token
            and s.seq = any (l.seqs)
    ) as s
    where l.consumer_id = consumer_id
        and l.epoch = reader.epoch;

    parts := array[
        (select count(*) from (select from postbus_data.waiting as w where w.consumer_id = consumer_id limit 10000) as w),
        (select count(*) from (select from postbus_data.parked as p where p.consumer_id = consumer_id and p.epoch = reader.epoch limit 10000) as p),
        (
            select count(*)
            from (
                select
                from unnest(postbus_data.lanes(reader.stream_id)) as level (lane)
                join postbus_data.due as d on d.consumer_id = consumer_id
                    and d.epoch = reader.epoch
                    and d.lane = level.lane
                    and d.n > coalesce(
                        (
                            select r.read_to_n
                            from postbus_data.redelivery_position as r
                            where r.consumer_id = consumer_id
                                and r.epoch = reader.epoch
                                and r.lane = level.lane
                            order by r.read_to_n desc
                            limit 1
                        ),
                        0
                    )
                limit 10000
            ) as d
        ) + (
            -- Of a consumer by channel: they stay until it is their channel's turn.
            select count(*)
            from (
                select
                from postbus_data.due as d
                where d.consumer_id + 0 = consumer_id
                    and d.epoch = reader.epoch
                    and d.channel is not null
                limit 10000
            ) as d
            where reader.by_channel
        )
    ];
    waiting := least(10000, parts[1] + parts[2] + parts[3]);
    is_exact := is_exact and waiting < 10000;
    if source.one_message_per_key and waiting > 0 then
        -- Those that a newer version has replaced are not delivered again. In the orders that keep no key, nobody has looked yet.
        execute format(
            'select count(*)
            from (
                (select w.key, w.seq from postbus_data.waiting as w where w.consumer_id = $1 and w.key is not null limit 10000)
                union all
                (select p.key, p.seq from postbus_data.parked as p where p.consumer_id = $1 and p.epoch = $2 limit 10000)
            ) as h
            where not exists (select from postbus_data.state_%s as t where t.key = h.key and t.seq = h.seq)',
            source.id
        )
        into replaced
        using consumer_id, reader.epoch;
        waiting := waiting - replaced;
        is_exact := is_exact and (reader.ordering = 'key' or waiting = 0);
    end if;
    select count(*) into dead
    from (select from postbus_data.dead_letter as d where d.consumer_id = consumer_id limit 10000) as d;
    timed_out := coalesce(
        (
            select s.timed_out_count
            from postbus_data.sweep_state as s
            where s.consumer_id = consumer_id
                and s.epoch = reader.epoch
            order by s.swept_to desc
            limit 1
        ),
        0
    );
    backlog := unread + in_flight + waiting;
    by_priority := jsonb_build_object('4', unread + waiting);
    if partitions[cardinality(partitions)] < 100000000 then
        return;
    end if;
    by_priority := '{}';
    foreach lane in array postbus_data.lanes(source.id) loop
        select c.message_count
        into here
        from (
            select array_agg(p.n order by p.n) as partitions, array_agg(p.after_seq order by p.n) as after_seqs
            from unnest(partitions, after_seqs) as p (n, after_seq)
            where p.n between lane and lane + 99999999
        ) as own
        cross join lateral postbus_data.count_messages(source.id, own.partitions, own.after_seqs, array_to_string(conditions, ' and '), reader) as c;
        select here + count(*)
        into here
        from (
            (
                select from postbus_data.waiting as w where w.consumer_id = consumer_id and w.partition between lane and lane + 99999999 limit 10000
            )
            union all
            (
                select
                from postbus_data.parked as p
                where p.consumer_id = consumer_id
                    and p.epoch = reader.epoch
                    and p.partition between lane and lane + 99999999
                limit 10000
            )
            union all
            (
                select from postbus_data.due as d where d.consumer_id = consumer_id and d.epoch = reader.epoch and d.lane = lane limit 10000
            )
        ) as held;
        by_priority := by_priority || jsonb_build_object(postbus.priority_of(lane), here);
    end loop;
end
$$;

-- Looks at the next messages of one channel. See channel_statement for the arguments.
with scanned as materialized (
    select
        l.seq,
        coalesce(l.expires_at <= $9, false) as is_expired,
        ($1.filter_key_regex is null or coalesce(l.key ~ $1.filter_key_regex, false))
        and ($1.filter_headers is null or coalesce(l.headers @> $1.filter_headers, false))
        and ($1.filter_headers_not is null or not coalesce(l.headers @> any ($1.filter_headers_not), false))
        and {matches_data} as matches
    from {log_table} as l
    where {channel} = $7
        and l.seq > $3
        and l.seq <= $4
    order by l.seq
    limit $5
),
taken as materialized (
    select s.seq from scanned as s where s.matches and not s.is_expired order by s.seq limit $6
),
edge as materialized (
    select
        case
            when (select count(*) from taken) = $6 then (select max(t.seq) from taken as t)
            when (select count(*) from scanned) < $5 then $4
            else (select max(s.seq) from scanned as s)
        end as seq
)
select
    (select array_agg(t.seq order by t.seq) from taken as t),
    null::text[],
    (select array_agg(s.seq order by s.seq) from scanned as s where s.matches and s.is_expired and s.seq <= e.seq),
    e.seq,
    (select count(*) from scanned) < $5 and not exists (select from scanned as s where s.seq > e.seq),
    (select count(*)::integer from scanned),
    null::text[],
    null::bigint[]
from edge as e

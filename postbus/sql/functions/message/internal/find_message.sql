create or replace function postbus_data.find_message(stream_id integer, seq bigint)
returns postbus.delivery
language plpgsql
volatile
set enable_seqscan = off
set enable_bitmapscan = off
as $$
/*
The message with this seq, from the log or from what is kept of dropped segments; null if there is none. It may be above the horizon. It
takes one index probe for each partition.
*/
#variable_conflict use_variable
declare
    segment record;
    message postbus.delivery;
    lanes integer[] := postbus_data.lanes(stream_id);
begin
    for segment in
        select g.number, g.partition_base, g.partition_count, s.data_type = 'bytes' as has_bytes
        from postbus_data.segment as g
        join postbus_data.stream as s on s.id = g.stream_id
        where g.stream_id = stream_id
            and g.after_seq < seq
            and (g.sealed_at is null or g.last_seq >= seq)
    loop
        execute format(
            'select null::text, null::integer, l.seq, l.partition, l.key, %s, l.headers, l.published_at
            from postbus_data.log_%s_%s as l
            where l.partition = any (array(select u.lane + n from unnest($1) as u (lane) cross join generate_series($2, $3) as n)) and l.seq = $4',
            case when segment.has_bytes then 'null::text, l.data' else 'l.data::text, null::bytea' end,
            stream_id,
            segment.number
        )
        into message
        using lanes, segment.partition_base, segment.partition_base + segment.partition_count - 1, seq;
        exit when message.seq is not null;
    end loop;
    if message.seq is null then
        select null::text, null::integer, k.seq, k.partition, k.key, k.data, k.bytes, k.headers, k.published_at
        into message
        from (
            with recursive p (n) as (
                select min(k.partition) from postbus_data.kept as k where k.stream_id = stream_id
                union all
                select (select min(k.partition) from postbus_data.kept as k where k.stream_id = stream_id and k.partition > p.n)
                from p
                where p.n is not null
            )
            select p.n from p
        ) as p
        cross join lateral (
            select k.* from postbus_data.kept as k where k.stream_id = stream_id and k.partition = p.n and k.seq = seq
        ) as k;
    end if;
    return message;
end
$$;

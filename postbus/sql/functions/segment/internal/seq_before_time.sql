create or replace function postbus_data.seq_before_time(stream_id integer, at timestamptz)
returns bigint
language plpgsql
volatile
set enable_seqscan = off
set enable_bitmapscan = off
as $$
/*
The seq after which a reader begins who wants what was published at or after a time: the last message before the first of that
time.

Never too late. While a publisher is open, its messages may lie further back with a time that counts, so it is up to a second too
early then. Of messages published at the same moment, an earlier one may have the higher seq and come too.
*/
declare
    -- Read first: what lies below it is visible afterwards.
    horizon bigint := postbus_data.horizon_of(stream_id);
    early_seq bigint := postbus_data.seq_before(stream_id, at - interval '1 second');
    last_seq bigint := postbus_data.previous_seq(stream_id, 9223372036854775807);
    segment postbus_data.segment;
    candidate bigint;
    first_seq bigint;
begin
    for segment in
        select s.*
        from postbus_data.segment as s
        where s.stream_id = seq_before_time.stream_id
            and (s.last_seq > early_seq or s.sealed_at is null)
        order by s.number
    loop
        exit when first_seq <= segment.after_seq;
        begin
            execute format(
                'select min(m.seq)
                from postbus_data.segment_partitions(%s, %s, %s) as p (n)
                cross join lateral (
                    select l.seq
                    from %s as l
                    where l.partition = p.n and l.seq > $1 and l.published_at >= $2
                    order by l.seq
                    limit 1
                ) as m',
                segment.stream_id,
                segment.partition_base,
                segment.partition_count,
                postbus_data.log_table(stream_id, segment.number)
            ) into candidate using early_seq, at;
        exception when undefined_table then
            candidate := null; -- Purged and dropped meanwhile.
        end;
        first_seq := least(first_seq, candidate);
    end loop;
    if first_seq is not null then
        last_seq := coalesce(postbus_data.previous_seq(stream_id, first_seq - 1), 0);
    end if;
    return greatest(early_seq, least(last_seq, horizon));
end
$$;

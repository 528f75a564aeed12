create or replace function postbus_data.count_range(stream_id integer, after_seq bigint, to_seq bigint)
returns bigint
language plpgsql
volatile
set enable_seqscan = off
as $$
/* How many messages of a stream's log have after_seq < seq <= to_seq, counted one by one. */
declare
    segment postbus_data.segment;
    counted bigint;
    total bigint := 0;
begin
    for segment in
        select g.*
        from postbus_data.segment as g
        where g.stream_id = count_range.stream_id
            and g.after_seq < to_seq
            and (g.last_seq > count_range.after_seq or g.sealed_at is null)
    loop
        execute format(
            'select count(*)
            from postbus_data.segment_partitions(%s, %s, %s) as p (n)
            cross join lateral (
                select from %s as l where l.partition = p.n and l.seq > $1 and l.seq <= $2
            ) as m',
            segment.stream_id,
            segment.partition_base,
            segment.partition_count,
            postbus_data.log_table(stream_id, segment.number)
        ) into counted using after_seq, to_seq;
        total := total + counted;
    end loop;
    return total;
end
$$;

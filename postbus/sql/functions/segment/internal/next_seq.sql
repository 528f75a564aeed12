create or replace function postbus_data.next_seq(stream_id integer, after_seq bigint)
returns bigint
language plpgsql
volatile
set enable_seqscan = off
set enable_bitmapscan = off
as $$
/*
The seq of the first message above a seq, or null: one index probe per partition in at most two segments that have messages.

It looks past the horizon; callers compare.
*/
declare
    segment postbus_data.segment;
    candidate bigint;
    found_seq bigint;
begin
    for segment in
        select s.*
        from postbus_data.segment as s
        where s.stream_id = next_seq.stream_id
            and (s.last_seq > next_seq.after_seq or s.sealed_at is null)
        order by s.number
    loop
        exit when found_seq <= segment.after_seq;
        begin
            execute format(
                'select min(m.seq)
                from postbus_data.segment_partitions(%s, %s, %s) as p (n)
                cross join lateral (
                    select l.seq from %s as l where l.partition = p.n and l.seq > $1 order by l.seq limit 1
                ) as m',
                segment.stream_id,
                segment.partition_base,
                segment.partition_count,
                postbus_data.log_table(stream_id, segment.number)
            ) into candidate using after_seq;
        exception when undefined_table then
            candidate := null; -- Purged and dropped meanwhile.
        end;
        found_seq := least(found_seq, candidate);
    end loop;
    return found_seq;
end
$$;

create or replace function postbus_data.previous_seq(stream_id integer, up_to_seq bigint)
returns bigint
language plpgsql
volatile
set enable_seqscan = off
set enable_bitmapscan = off
as $$
/* The seq of the last message at or below a seq, or null: the mirror of next_seq. */
declare
    segment postbus_data.segment;
    candidate bigint;
    found_seq bigint;
begin
    for segment in
        select s.*
        from postbus_data.segment as s
        where s.stream_id = previous_seq.stream_id
            and s.after_seq < up_to_seq
        order by s.number desc
    loop
        exit when found_seq >= segment.last_seq;
        begin
            execute format(
                'select max(m.seq)
                from postbus_data.segment_partitions(%s, %s, %s) as p (n)
                cross join lateral (
                    select l.seq from %s as l where l.partition = p.n and l.seq <= $1 order by l.seq desc limit 1
                ) as m',
                segment.stream_id,
                segment.partition_base,
                segment.partition_count,
                postbus_data.log_table(stream_id, segment.number)
            ) into candidate using up_to_seq;
        exception when undefined_table then
            candidate := null; -- Purged and dropped meanwhile.
        end;
        found_seq := greatest(found_seq, candidate);
    end loop;
    return found_seq;
end
$$;

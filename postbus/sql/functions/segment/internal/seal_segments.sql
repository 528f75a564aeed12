create or replace function postbus_data.seal_segments(stream_id integer, sequence regclass)
returns integer
language plpgsql
volatile
as $$
/*
Note that segments before the register's were rolled, and seal those that no publisher can write to any more.

A publisher that still writes to a rolled segment took its horizon lock before it read the register, so the lock's key is at most
last_value after the roll. When no such lock is left, all messages of the segment are committed and there will be no more.
*/
declare
    current_number integer := postbus_data.layout_segment(pg_sequence_last_value(to_regclass('postbus_data.layout_' || stream_id)));
    last_value bigint := pg_sequence_last_value(sequence);
    oldest bigint;
    segment postbus_data.segment;
    last_message record;
    step_count integer := 0;
begin
    update postbus_data.segment as s
    set rolled_at_seq = last_value
    where s.stream_id = seal_segments.stream_id
        and s.number < current_number
        and s.rolled_at_seq is null;
    if found then
        -- The call that moved the register may have failed after it.
        perform postbus_data.create_publish_functions(stream_id);
        perform postbus_data.create_receive_function(stream_id);
    end if;

    last_value := pg_sequence_last_value(sequence);
    select min(l.held_at) into oldest from postbus_data.publisher_locks(stream_id, last_value) as l;
    for segment in
        select s.*
        from postbus_data.segment as s
        where s.stream_id = seal_segments.stream_id
            and s.sealed_at is null
            and s.rolled_at_seq < coalesce(oldest, s.rolled_at_seq + 1)
        order by s.number
    loop
        execute format(
            'select max(m.seq) as seq, max(m.published_at) as published_at
            from postbus_data.segment_partitions(%s, %s, %s) as p (n)
            cross join lateral (
                select l.seq, l.published_at from %s as l where l.partition = p.n order by l.seq desc limit 1
            ) as m',
            segment.stream_id,
            segment.partition_base,
            segment.partition_count,
            postbus_data.log_table(stream_id, segment.number)
        ) into last_message;
        update postbus_data.segment as s
        set sealed_at = clock_timestamp(),
            last_seq = coalesce(last_message.seq, s.after_seq),
            last_published_at = coalesce(last_message.published_at, s.prepared_at)
        where s.stream_id = seal_segments.stream_id
            and s.number = segment.number;
        step_count := step_count + 1;
    end loop;
    return step_count;
end
$$;

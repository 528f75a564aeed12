create or replace function postbus_data.seq_before(stream_id integer, at timestamptz)
returns bigint
language plpgsql
volatile
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
as $$
/*
A seq such that every message up to it was published before a time, close to the highest such seq.

Times grow with seqs but for the moment between drawing a number and reading the clock; a caller that must not miss a message
asks for a second earlier and compares times itself. Each of up to eight partitions gives a bound, by bisection over its index;
the highest is kept, because a partition with few messages gives a low one.
*/
declare
    segment postbus_data.segment;
    bound bigint;
    low bigint;
    high bigint;
    middle bigint;
    probe record;
begin
    select s.*
    into segment
    from postbus_data.segment as s
    where s.stream_id = seq_before.stream_id
        and (s.sealed_at is null or s.last_published_at >= at)
    order by s.number
    limit 1;

    bound := segment.after_seq;
    for partition in segment.partition_base .. segment.partition_base + least(segment.partition_count, 8) - 1 loop
        low := segment.after_seq;
        high := coalesce(segment.last_seq, pg_sequence_last_value(to_regclass('postbus_data.seq_' || stream_id)));
        while low < high loop
            middle := low + (high - low) / 2;
            execute format(
                'select l.seq, l.published_at from %s as l where l.partition = $1 and l.seq > $2 order by l.seq limit 1',
                postbus_data.log_table(stream_id, segment.number)
            ) into probe using partition, middle;
            if probe.seq <= high and probe.published_at < at then
                low := probe.seq;
            else
                high := middle;
            end if;
        end loop;
        bound := greatest(bound, low);
    end loop;
    return bound;
end
$$;

create or replace function postbus_data.seq_before(stream_id integer, at timestamptz)
returns bigint
language plpgsql
volatile
as $$
/*
A seq such that every message up to it was published before a time, close to the highest such seq.

Times grow with seqs except for the moment between drawing a seq and reading the clock; a caller that must not miss a message
asks for a second earlier and compares times itself. Each of up to eight partitions of a level gives a bound; the highest is used, because
a partition with few messages gives a low one.
*/
declare
    segment postbus_data.segment;
    bound bigint;
    partition integer;
begin
    select s.*
    into segment
    from postbus_data.segment as s
    where s.stream_id = seq_before.stream_id
        and (s.sealed_at is null or s.last_published_at >= at)
    order by s.number
    limit 1;

    bound := segment.after_seq;
    for partition in select p from postbus_data.segment_partitions(segment.stream_id, segment.partition_base, least(segment.partition_count, 8)) as p loop
        bound := greatest(bound, (postbus_data.bisect_time(segment, partition, at)).before_seq);
    end loop;
    return bound;
end
$$;

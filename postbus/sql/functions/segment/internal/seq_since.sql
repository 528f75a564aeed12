create or replace function postbus_data.seq_since(stream_id integer, at timestamptz)
returns bigint
language plpgsql
volatile
as $$
/*
A seq such that every message from it on was published at or after a time; null when none is known. As exact as seq_before.

Any message of that time gives such a bound, in any partition; the lowest of up to eight partitions of a segment, of each level, is used.
*/
declare
    segment postbus_data.segment;
    bound bigint;
    partition integer;
begin
    for segment in
        select s.*
        from postbus_data.segment as s
        where s.stream_id = seq_since.stream_id
            and (s.sealed_at is null or s.last_published_at >= at)
        order by s.number
    loop
        for partition in select p from postbus_data.segment_partitions(segment.stream_id, segment.partition_base, least(segment.partition_count, 8)) as p loop
            bound := least(bound, (postbus_data.bisect_time(segment, partition, at)).since_seq);
        end loop;
        exit when bound is not null;
    end loop;
    return bound;
end
$$;

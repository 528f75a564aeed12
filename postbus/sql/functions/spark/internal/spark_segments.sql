create or replace function postbus_data.spark_segments(
    stream_id integer,
    after_seq bigint,
    to_seq bigint,
    caller postbus.caller default postbus.current_caller()
)
returns table (number integer, first_partition integer, last_partition integer, above_seq bigint, last_seq bigint)
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
The segments that may hold messages with after_seq < seq <= to_seq, in order, with the bounds of their seqs: above_seq is below
all of them, and last_seq is null while the segment is written to: a row for each level in use, with its partitions. None for a caller that may not read the stream.
*/
    select g.number, lane + g.partition_base, lane + g.partition_base + g.partition_count - 1, g.after_seq, g.last_seq
    from postbus_data.segment as g
    cross join unnest(postbus_data.lanes(g.stream_id)) as lane
    where g.stream_id = spark_segments.stream_id
        and g.after_seq < to_seq
        and (g.last_seq > spark_segments.after_seq or g.sealed_at is null)
        and postbus_data.has_right(caller, g.stream_id, 'consume', 'read')
    order by g.number, lane
$$;

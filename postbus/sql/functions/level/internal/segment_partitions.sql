create or replace function postbus_data.segment_partitions(stream_id integer, partition_base integer, partition_count integer)
returns setof integer
language sql
stable
rows 32
as $$
/* The partitions of a segment, of all levels in use. */
    select lane + n
    from unnest(postbus_data.lanes(segment_partitions.stream_id)) as lane
    cross join generate_series(segment_partitions.partition_base, segment_partitions.partition_base + segment_partitions.partition_count - 1) as n
$$;

create or replace function postbus_data.unread_partitions(reader postbus_data.consumer)
returns setof integer
language sql
volatile
as $$
/* The partitions in which a consumer may have something left to read: those that it reads, and those of newer layouts. */
    select p.n
    from (
        select distinct g.partition_base, g.partition_count
        from postbus_data.segment as g
        where g.stream_id = reader.stream_id
            and g.partition_base >= reader.partition_base
    ) as g
    cross join lateral postbus_data.segment_partitions(reader.stream_id, g.partition_base, g.partition_count) as p (n)
    order by p.n
$$;

create or replace function postbus_data.pack_layout(segment integer, partition_base integer, partition_count integer, has_levels boolean)
returns bigint
language sql
immutable
as $$
/*
The value of a layout register: 29 bits of segment, 24 of base, 11 of count. Counts are 1 to 1024, and with levels 1025 to 2047 and, for 1024, 0.
*/
    select (segment::bigint << 35) | (partition_base::bigint << 11) | mod(partition_count + case when has_levels then 1024 else 0 end, 2048)
$$;

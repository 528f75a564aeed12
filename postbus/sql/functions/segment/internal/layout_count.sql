create or replace function postbus_data.layout_count(layout bigint)
returns integer
language sql
immutable parallel safe
as $$
/* How many partitions publishers write to, as a layout register says: see pack_layout. Written to be inlined. */
    select (((layout - 1) & 1023) + 1)::integer
$$;

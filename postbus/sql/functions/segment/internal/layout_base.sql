create or replace function postbus_data.layout_base(layout bigint)
returns integer
language sql
immutable parallel safe
as $$
/* The first of the partitions that publishers write to, as a layout register says: see set_layout. Written to be inlined. */
    select ((layout >> 11) & 16777215)::integer
$$;

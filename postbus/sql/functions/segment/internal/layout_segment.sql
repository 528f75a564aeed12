create or replace function postbus_data.layout_segment(layout bigint)
returns integer
language sql
immutable parallel safe
as $$
/* The segment that publishers write to, as a layout register says: see set_layout. Written to be inlined. */
    select (layout >> 35)::integer
$$;

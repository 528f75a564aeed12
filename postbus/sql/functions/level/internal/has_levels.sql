create or replace function postbus_data.has_levels(layout bigint)
returns boolean
language sql
immutable parallel safe
as $$
/* Whether messages of another priority than the default were published, as a layout register says: see pack_layout. Written to be inlined. */
    select ((layout - 1) & 1024) <> 0
$$;

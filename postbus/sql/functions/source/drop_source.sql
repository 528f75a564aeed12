create or replace function postbus.drop_source(name text)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Forget a source. What it has published stays. Its slot and its publication stay too, and the slot keeps the source's log until somebody drops it:
the library and the command line do that first. list_sources says what they are called.

Raises   PB404 for an unknown source.
Touches  source, source_position, source_status, source_table (delete).
*/
declare
    dropped integer := postbus_data.find_source(name);
begin
    delete from postbus_data.source as s where s.id = dropped;
end
$$;

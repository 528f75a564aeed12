create or replace function postbus.resume_source(name text)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Read a source on that was paused, or try again at once what it could not do.

Raises   PB404 for an unknown source.
Touches  source (update).
*/
declare
    resumed integer := postbus_data.find_source(name);
begin
    update postbus_data.source as s set paused = false, version = s.version + 1 where s.id = resumed;
end
$$;

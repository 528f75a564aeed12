create or replace function postbus.pause_source(name text)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Stop reading a source until it is resumed. Nothing is missed, because its slot keeps the log: a source that is paused for long needs disk.

Raises   PB404 for an unknown source.
Touches  source (update).
*/
declare
    paused_id integer := postbus_data.find_source(name);
begin
    update postbus_data.source as s set paused = true where s.id = paused_id;
end
$$;

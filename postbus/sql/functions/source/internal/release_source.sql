create or replace function postbus_data.release_source(name text, holder uuid)
returns void
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
/*
Let another reader have a source at once.

Touches  source_status (update).
*/
    update postbus_data.source_status as u
    set holder = null
    from postbus_data.source as s
    where s.name = release_source.name
        and u.source_id = s.id
        and u.holder = release_source.holder
$$;

create or replace function postbus_data.note_timeline(source_id integer, timeline integer)
returns void
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
/*
Record that a source has failed over to another timeline, on which its slot goes on.

Touches  source (update).
*/
    update postbus_data.source as s set timeline = note_timeline.timeline where s.id = source_id
$$;

create or replace function postbus_data.end_emptying(source_id integer)
returns void
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
/*
Record that a truncate of each table of a source is published. The reader calls it in the transaction of publish_source.

Touches  source (update).
*/
    update postbus_data.source as s set empties = false where s.id = end_emptying.source_id
$$;

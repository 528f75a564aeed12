create or replace function postbus_data.log_table(stream_id integer, number integer)
returns text
language sql
immutable parallel safe
as $$
/* The qualified name of a segment's table. */
    select 'postbus_data.log_' || stream_id::text || '_' || number::text
$$;

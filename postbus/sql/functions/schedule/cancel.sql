create or replace function postbus.cancel(stream text, ids bigint[], caller postbus.caller default postbus.current_caller())
returns integer
language sql
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Cancel scheduled messages.

Returns  how many were cancelled; a message that has been published, or is being published, is not counted.
Raises   PB403 without the right to publish, PB404 for an unknown stream.
Touches  scheduled (delete).
*/
    with cancelled as (
        delete from postbus_data.scheduled as s
        where s.stream_id = postbus_data.permitted_stream(caller, stream, 'publish')
            and s.id = any (ids)
        returning s.id
    )
    select count(*)::integer from cancelled
$$;

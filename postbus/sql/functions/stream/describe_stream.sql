create or replace function postbus.describe_stream(stream text, caller postbus.caller default postbus.current_caller())
returns table (id integer, data_type text)
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
What a client needs to know of a stream to publish to it. Cheaper than stream_info.

Raises   PB404 for an unknown stream or one on which the caller has no right.
*/
    select s.id, s.data_type
    from postbus_data.stream as s
    where s.id = postbus_data.permitted_stream(caller, stream, 'publish', 'consume', 'read')
$$;

create or replace function postbus.horizon(stream text, caller postbus.caller default postbus.current_caller())
returns bigint
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
The seq up to which a stream can be read: no transaction that publishes at or below it is still open.

Raises   PB404 for an unknown stream or one on which the caller has no right, PB412 outside READ COMMITTED, PB503 on a standby.
*/
begin
    return postbus_data.horizon_of(postbus_data.permitted_stream(caller, stream, 'publish', 'consume', 'read'));
end
$$;

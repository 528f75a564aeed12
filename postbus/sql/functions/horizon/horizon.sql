create or replace function postbus.horizon(stream text, caller postbus.caller default postbus.current_caller())
returns bigint
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
The seq up to which a stream may be read: no publishing transaction at or below it is still open.

Raises   PB404, PB412 outside READ COMMITTED, PB503 on a standby.
*/
begin
    return postbus_data.horizon_of(postbus_data.permitted_stream(caller, stream, 'publish', 'consume', 'read'));
end
$$;

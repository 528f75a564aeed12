create or replace function postbus.revoke_token(id integer)
returns boolean
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Revoke a token permanently. Servers notice within a second.

Returns  whether a token with that id exists; revoking it again changes nothing.
Touches  token (update).
*/
begin
    update postbus_data.token as t
    set revoked_at = coalesce(t.revoked_at, clock_timestamp()),
        aws_secret = null
    where t.id = revoke_token.id;
    return found;
end
$$;

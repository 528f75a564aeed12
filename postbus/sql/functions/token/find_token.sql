create or replace function postbus.find_token(digest text)
returns setof postbus.token_info
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
/* The token with this digest, even if it is expired or revoked; no row when there is none. */
    select t.id, t.name, t.digest, t.scopes, t.streams, t.rate_limit, t.created_at, t.expires_at, t.revoked_at
    from postbus_data.token as t
    where t.digest = find_token.digest
$$;

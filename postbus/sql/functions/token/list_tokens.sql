create or replace function postbus.list_tokens()
returns setof postbus.token_info
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
/* The tokens of the HTTP server that are not revoked, by id, including expired ones. */
    select t.id, t.name, t.digest, t.scopes, t.streams, t.rate_limit, t.created_at, t.expires_at, t.revoked_at
    from postbus_data.token as t
    where t.revoked_at is null
    order by t.id
$$;

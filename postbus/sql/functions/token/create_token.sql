create or replace function postbus.create_token(
    name text,
    digest text,
    scopes text[],
    streams text[] default array['*'],
    rate_limit double precision default null,
    expires_at timestamptz default null
)
returns postbus.token_info
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Store a token for the HTTP server.

digest      the SHA-256 of the token, as 64 hexadecimal digits. The token itself never reaches Postgres, so no log contains it.
scopes      publish, consume, manage: at least one.
streams     the names of the streams it is for, in which "*" stands for any characters.
rate_limit  how many requests per second; null: no limit.

Returns  the stored token.
Raises   PB400 for an invalid value, PB409 when the digest is already stored.
Touches  token (insert).
*/
#variable_conflict use_variable
declare
    problem text;
    stored postbus.token_info;
begin
    problem := case
        when name is null or name !~ '^[A-Za-z0-9_.@ -]{1,100}$'
            then 'the name of a token is 1 to 100 letters, digits, spaces or "_.@-"'
        when digest is null or digest !~ '^[0-9a-f]{64}$'
            then 'the digest of a token is 64 hexadecimal digits'
        when scopes is null or cardinality(scopes) = 0 or not scopes <@ array['publish', 'consume', 'manage']
            then 'scopes are some of publish, consume, manage'
        when streams is null or cardinality(streams) not between 1 and 100
            or exists (select from unnest(streams) as s where s is null or s !~ '^[A-Za-z0-9_*-]{1,63}$')
            then 'streams are 1 to 100 names, in which "*" stands for any characters'
        when rate_limit is not null and (rate_limit > 0 and rate_limit <= 1000000) is not true
            then 'rate_limit is between 0 and 1000000'
    end;
    if problem is not null then
        raise exception using errcode = 'PB400', message = problem;
    end if;
    insert into postbus_data.token as t (name, digest, scopes, streams, rate_limit, expires_at)
    values (name, digest, scopes, streams, rate_limit, expires_at)
    on conflict do nothing
    returning t.id, t.name, t.digest, t.scopes, t.streams, t.rate_limit, t.created_at, t.expires_at, t.revoked_at
    into stored;
    if stored.id is null then
        raise exception using errcode = 'PB409', message = 'the token already exists';
    end if;
    return stored;
end
$$;

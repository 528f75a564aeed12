-- A row is a token that allows requests to the HTTP server. Only its SHA-256 is stored, not the token itself.
create table postbus_data.token (
    id integer generated always as identity primary key,
    name text collate "C" not null,
    -- The SHA-256 of the token, in hexadecimal.
    digest text collate "C" not null,
    -- Some of publish, consume, manage.
    scopes text[] collate "C" not null,
    -- Names of streams, in which "*" stands for any characters.
    streams text[] collate "C" not null,
    -- Requests per second; null: no limit.
    rate_limit double precision,
    created_at timestamptz not null default clock_timestamp(),
    -- Null: never.
    expires_at timestamptz,
    revoked_at timestamptz
);

-- To find the token of a request.
create unique index token_digest on postbus_data.token (digest);

-- What create_token, list_tokens and find_token return.
create type postbus.token_info as (
    id integer,
    name text,
    digest text,
    scopes text[],
    streams text[],
    rate_limit double precision,
    created_at timestamptz,
    expires_at timestamptz,
    revoked_at timestamptz
);

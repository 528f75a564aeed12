-- A row is a token with which somebody may use the HTTP server. The token itself is not here, only its SHA-256.
create table postbus_data.token (
    id integer generated always as identity primary key,
    name text collate "C" not null,
    -- The SHA-256 of the token, in hexadecimal.
    digest text collate "C" not null,
    -- Of publish, consume, manage.
    scopes text[] collate "C" not null,
    -- Names of streams, in which "*" stands for any characters.
    streams text[] collate "C" not null,
    -- Requests per second; null for any number.
    rate_limit double precision,
    created_at timestamptz not null default clock_timestamp(),
    -- Null never expires.
    expires_at timestamptz,
    revoked_at timestamptz
);

-- The token that a request carries.
create unique index token_digest on postbus_data.token (digest);

-- What create_token, list_tokens and find_token say of a token.
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

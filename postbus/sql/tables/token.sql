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
    revoked_at timestamptz,
    -- Of a key pair for clients of AWS. The secret is stored as it is, since a signature can only be verified by it; a revoked token has none.
    access_key_id text collate "C",
    aws_secret text
);

-- To find the token of a request.
create unique index token_digest on postbus_data.token (digest);

-- To find the token of a signed request.
create unique index token_access_key on postbus_data.token (access_key_id) where access_key_id is not null;

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

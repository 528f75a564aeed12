-- A row is a webhook source: requests to /api/webhook/<name> become messages of a stream, once they are verified.
create table postbus_data.webhook_source (
    id integer generated always as identity primary key,
    name text collate "C" not null unique,
    stream_id integer not null references postbus_data.stream on delete cascade,
    -- Who sends, and so how a request is verified: standard, stripe, github, shopify, slack, hmac, basic, header or none.
    kind text collate "C" not null
        check (kind in ('standard', 'stripe', 'github', 'shopify', 'slack', 'hmac', 'basic', 'header', 'none')),
    -- Any of them verifies a request; several while one is replaced.
    secrets text[] not null,
    -- What else its kind needs, such as the name of a header.
    options jsonb not null,
    -- What the key of a message is made from.
    key_template text not null,
    -- Where the id of an event is: header:NAME, json:/POINTER or sha256. Null: where its kind has it.
    id_from text,
    -- Which headers go along, in lower case.
    keep_headers text[] not null,
    -- An event whose id was seen within the stream's dedup window is not published again.
    dedup boolean not null,
    max_body_bytes integer not null,
    -- Requests per second to a process; null: no limit.
    max_rate double precision,
    paused boolean not null default false,
    created_at timestamptz not null default clock_timestamp()
);

-- A row is a request that a webhook source refused. The last fifty stay.
create table postbus_data.webhook_refusal (
    source_id integer not null references postbus_data.webhook_source on delete cascade,
    n bigint generated always as identity,
    refused_at timestamptz not null default clock_timestamp(),
    status integer not null,
    reason text not null,
    -- How many were refused since the last row.
    refused_count integer not null,
    primary key (source_id, n)
);

-- A webhook source, without its secrets; see postbus.list_webhook_sources.
create type postbus.webhook_source_info as (
    name text,
    stream text,
    kind text,
    secret_count integer,
    options jsonb,
    key_template text,
    id_from text,
    keep_headers text[],
    dedup boolean,
    max_body_bytes integer,
    max_rate double precision,
    paused boolean,
    created_at timestamptz,
    -- The last ten, newest first: objects with refused_at, status, reason and refused_count.
    last_refusals jsonb
);

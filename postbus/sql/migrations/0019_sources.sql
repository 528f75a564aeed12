-- Changes of existing tables of Postgres as messages.
create table postbus_data.source (
    id integer generated always as identity primary key,
    name text collate "C" not null unique,
    stream_id integer not null references postbus_data.stream,
    url text,
    shown_url text,
    tables text[] not null,
    operations text[] not null,
    columns jsonb not null,
    filters jsonb not null,
    key_template text not null,
    format text collate "C" not null check (format in ('sequin', 'sequin2024', 'debezium')),
    backfill boolean not null,
    slot text not null,
    publication text not null,
    is_foreign_publication boolean not null,
    paused boolean not null default false,
    empties boolean not null default false,
    version integer not null default 1,
    epoch integer not null default 0,
    system_identifier text,
    timeline integer,
    created_at timestamptz not null default clock_timestamp()
);

create index source_stream on postbus_data.source (stream_id);

create table postbus_data.source_position (
    source_id integer not null references postbus_data.source on delete cascade,
    epoch integer not null,
    lsn pg_lsn not null,
    committed_at timestamptz,
    stored_at timestamptz not null default clock_timestamp(),
    primary key (source_id, epoch, lsn)
);

create table postbus_data.source_status (
    source_id integer primary key references postbus_data.source on delete cascade,
    holder uuid,
    held_at timestamptz,
    state text collate "C" not null default 'starting',
    problem text,
    remedy text,
    lag_bytes bigint,
    lag_seconds double precision,
    wal_held_bytes bigint,
    change_count bigint not null default 0,
    transaction_count bigint not null default 0,
    changes_per_second double precision,
    updated_at timestamptz not null default clock_timestamp()
);

create table postbus_data.source_table (
    source_id integer not null references postbus_data.source on delete cascade,
    table_schema text not null,
    table_name text not null,
    backfill text collate "C" not null check (backfill in ('none', 'pending', 'running', 'paused', 'done', 'refused')),
    after_key text[],
    row_count bigint not null default 0,
    estimated_count bigint,
    problem text,
    started_at timestamptz,
    done_at timestamptz,
    primary key (source_id, table_schema, table_name)
);

create type postbus.source_info as (
    name text,
    stream text,
    database text,
    tables text[],
    operations text[],
    columns jsonb,
    filters jsonb,
    key_template text,
    format text,
    backfill boolean,
    slot text,
    publication text,
    state text,
    problem text,
    remedy text,
    lag_bytes bigint,
    lag_seconds double precision,
    wal_held_bytes bigint,
    change_count bigint,
    transaction_count bigint,
    changes_per_second double precision,
    position text,
    committed_at timestamptz,
    found_tables jsonb,
    created_at timestamptz,
    updated_at timestamptz
);

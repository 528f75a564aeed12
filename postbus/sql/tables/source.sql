-- A row is a Postgres source: tables of some database whose changes a process of the library publishes to a stream.
create table postbus_data.source (
    id integer generated always as identity primary key,
    name text collate "C" not null unique,
    stream_id integer not null references postbus_data.stream,
    -- A secret, since it may have a password. Null: this database.
    url text,
    -- Where that leads to, for display.
    shown_url text,
    -- Patterns of schema.table, where * stands for any characters. Without a schema: tables on the search path.
    tables text[] not null,
    operations text[] not null,
    -- By schema.table: the columns that are published, and the condition for rows.
    columns jsonb not null,
    filters jsonb not null,
    key_template text not null,
    format text collate "C" not null check (format in ('sequin', 'sequin2024', 'debezium')),
    backfill boolean not null,
    slot text not null,
    publication text not null,
    -- Somebody else made the publication, which is used as it is.
    is_foreign_publication boolean not null,
    paused boolean not null default false,
    -- A truncate of each table is to be published before anything else: all rows come anew.
    empties boolean not null default false,
    -- Counts changes of the settings: a reader that knows a former version begins anew.
    version integer not null default 1,
    -- Counts slots: each begins a history of positions of its own. Zero: there is no slot yet.
    epoch integer not null default 0,
    -- The cluster in which the slot is, and the timeline on which it was last read.
    system_identifier text,
    timeline integer,
    created_at timestamptz not null default clock_timestamp()
);

-- To find the sources of a stream.
create index source_stream on postbus_data.source (stream_id);

-- A row says that all transactions which end at or before this place of the source's log are published. Whoever publishes inserts the next row
-- in the same transaction, and deletes the one before.
create table postbus_data.source_position (
    source_id integer not null references postbus_data.source on delete cascade,
    epoch integer not null,
    lsn pg_lsn not null,
    -- When the last of these transactions was committed; null before the first.
    committed_at timestamptz,
    stored_at timestamptz not null default clock_timestamp(),
    primary key (source_id, epoch, lsn)
);

-- A row is what the process that reads a source says about it, every second or two.
create table postbus_data.source_status (
    source_id integer primary key references postbus_data.source on delete cascade,
    -- A name that the reader has made up; null: nobody reads it.
    holder uuid,
    held_at timestamptz,
    state text collate "C" not null default 'starting',
    -- What is wrong, and what to do about it.
    problem text,
    remedy text,
    lag_bytes bigint,
    -- How old the newest change was when it was published, or how long the oldest one that is not has waited.
    lag_seconds double precision,
    wal_held_bytes bigint,
    -- Since the source was created.
    change_count bigint not null default 0,
    transaction_count bigint not null default 0,
    changes_per_second double precision,
    updated_at timestamptz not null default clock_timestamp()
);

-- A row is a table of a source, and how far its existing rows are published.
create table postbus_data.source_table (
    source_id integer not null references postbus_data.source on delete cascade,
    table_schema text not null,
    table_name text not null,
    backfill text collate "C" not null check (backfill in ('none', 'pending', 'running', 'paused', 'done', 'refused')),
    -- The key of the last row that is published, as text; null before the first.
    after_key text[],
    row_count bigint not null default 0,
    estimated_count bigint,
    problem text,
    started_at timestamptz,
    done_at timestamptz,
    primary key (source_id, table_schema, table_name)
);

-- A row is one pipeline: a job of Spark from or to a stream, under the name by which it is run again and goes on.
create table postbus_data.pipeline (
    name text collate "C" primary key,
    kind text collate "C" not null,
    stream_id integer not null references postbus_data.stream on delete cascade,
    -- Whose lag is the pipeline's; null when it has an end instead.
    consumer text collate "C",
    options jsonb not null,
    state text collate "C" not null check (state in ('running', 'done', 'stopped', 'failed')),
    -- The newest run. An older one that still lives finds out here that it was replaced.
    run uuid not null,
    -- Of this run, and of all.
    run_count bigint not null default 0,
    message_count bigint not null default 0,
    -- How many messages this run is about to do, as far as is known.
    total_estimate bigint,
    position_seq bigint,
    -- What a pipeline with an end has to do, decided when it first began.
    plan jsonb,
    last_error text,
    started_at timestamptz not null default clock_timestamp(),
    noted_at timestamptz not null default clock_timestamp(),
    ended_at timestamptz
);

-- A row is the archive of a stream: files in a lake that hold its messages from start_after (excluded) to position_seq.
create table postbus_data.archive (
    stream_id integer primary key references postbus_data.stream on delete cascade,
    -- The folder that paths of files are relative to.
    root text not null,
    start_after bigint not null,
    position_seq bigint not null,
    created_at timestamptz not null default clock_timestamp(),
    -- With delta, the folder is a Delta table too, whose log follows what is listed here.
    format text collate "C" not null default 'parquet' check (format in ('parquet', 'delta'))
);

-- A row is one step of an archive: every message with after_seq < seq <= to_seq went into files, in the transaction that wrote this row. Steps follow
-- each other without a gap.
create table postbus_data.archive_batch (
    stream_id integer not null references postbus_data.archive on delete cascade,
    after_seq bigint not null,
    to_seq bigint not null check (to_seq > after_seq),
    message_count bigint not null,
    -- Its messages were purged before they were archived.
    is_lost boolean not null,
    archived_at timestamptz not null default clock_timestamp(),
    primary key (stream_id, to_seq)
);

-- A row is a file of an archive. What is not listed here, or is removed, does not count.
create table postbus_data.archive_file (
    id bigint generated always as identity primary key,
    stream_id integer not null references postbus_data.archive on delete cascade,
    path text collate "C" not null,
    bytes bigint not null,
    message_count bigint not null,
    first_seq bigint not null,
    last_seq bigint not null,
    first_published_at timestamptz not null,
    last_published_at timestamptz not null,
    added_at timestamptz not null default clock_timestamp(),
    -- Since then another file holds its messages, or nobody wants them. Readers that began before may still be at it.
    removed_at timestamptz,
    unique (stream_id, path)
);

-- The files that hold a range of seqs.
create index archive_file_seq on postbus_data.archive_file (stream_id, last_seq) where removed_at is null;

-- A row says what a file holds of a partition. The checksum is that of its messages, however they are ordered.
create table postbus_data.archive_part (
    file_id bigint not null references postbus_data.archive_file on delete cascade,
    partition integer not null,
    first_seq bigint not null,
    last_seq bigint not null,
    message_count bigint not null,
    checksum bigint not null,
    primary key (file_id, partition)
);

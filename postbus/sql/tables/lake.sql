-- A row is one pipeline: a Spark job that reads or writes a stream, under the name by which a later run continues it.
create table postbus_data.pipeline (
    name text collate "C" primary key,
    kind text collate "C" not null,
    stream_id integer not null references postbus_data.stream on delete cascade,
    -- The consumer whose lag is the pipeline's; null when the pipeline has an end.
    consumer text collate "C",
    options jsonb not null,
    state text collate "C" not null check (state in ('running', 'done', 'stopped', 'failed')),
    -- The newest run. An older run that is still alive finds out here that it was replaced.
    run uuid not null,
    -- Messages of this run, and of all runs.
    run_count bigint not null default 0,
    message_count bigint not null default 0,
    -- About how many messages this run will process, if that is known.
    total_estimate bigint,
    position_seq bigint,
    -- The plan of a pipeline that has an end, decided when it first began.
    plan jsonb,
    last_error text,
    started_at timestamptz not null default clock_timestamp(),
    noted_at timestamptz not null default clock_timestamp(),
    ended_at timestamptz,
    -- Of all runs: what could not be published and is in another stream, and rows that a watermark dropped.
    aside_count bigint not null default 0,
    late_count bigint not null default 0
);

-- A row is the archive of a stream: files in a lake that hold its messages from start_after (exclusive) to position_seq.
create table postbus_data.archive (
    stream_id integer primary key references postbus_data.stream on delete cascade,
    -- The folder to which the paths of files are relative.
    root text not null,
    start_after bigint not null,
    position_seq bigint not null,
    created_at timestamptz not null default clock_timestamp(),
    -- With delta, the folder is also a Delta table, whose log follows the files listed here.
    format text collate "C" not null default 'parquet' check (format in ('parquet', 'delta'))
);

-- A row is one step of an archive: in the transaction that wrote this row, every message with after_seq < seq <= to_seq was
-- listed in files. Steps follow each other without a gap.
create table postbus_data.archive_batch (
    stream_id integer not null references postbus_data.archive on delete cascade,
    after_seq bigint not null,
    to_seq bigint not null check (to_seq > after_seq),
    message_count bigint not null,
    -- The messages were purged before they were archived.
    is_lost boolean not null,
    archived_at timestamptz not null default clock_timestamp(),
    primary key (stream_id, to_seq)
);

-- A row is a file of an archive. A file that is not listed here, or is marked as removed, does not count.
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
    -- Since then other files hold its messages, or retention has removed it. Readers that began earlier may still read it.
    removed_at timestamptz,
    unique (stream_id, path)
);

-- The files that hold a range of seqs.
create index archive_file_seq on postbus_data.archive_file (stream_id, last_seq) where removed_at is null;

-- A row says what a file holds of a partition. The checksum covers its messages and does not depend on their order.
create table postbus_data.archive_part (
    file_id bigint not null references postbus_data.archive_file on delete cascade,
    partition integer not null,
    first_seq bigint not null,
    last_seq bigint not null,
    message_count bigint not null,
    checksum bigint not null,
    primary key (file_id, partition)
);

-- A row is a snapshot of a source at which ranges of a backfill were read, all by one run.
create table postbus_data.backfill_snapshot (
    id bigint generated always as identity primary key,
    pipeline text collate "C" not null references postbus_data.pipeline on delete cascade,
    run uuid not null,
    -- The transactions of the source whose effects were read.
    snapshot pg_snapshot not null,
    -- Where the WAL of the source was just before.
    wal_lsn pg_lsn not null,
    opened_at timestamptz not null default clock_timestamp(),
    -- No range is begun any more.
    closed_at timestamptz
);

-- A row is a range of a backfill's key: rows with after_key < key <= to_key in the order of the source. Decided when it first began, so that every row of
-- the source belongs to one range for ever.
create table postbus_data.backfill_range (
    pipeline text collate "C" not null references postbus_data.pipeline on delete cascade,
    -- Names one backfill: doing it again is another.
    writer text collate "C" not null,
    number integer not null,
    -- The values of the key's columns as text. Null is before the first, and behind the last row.
    after_key text[],
    to_key text[],
    -- Instead, the rows that have no value in a column of the key.
    is_of_nulls boolean not null,
    -- Since the transaction that published it: the snapshot at which it was read, and what it had. No foreign key: that transaction may be at the
    -- snapshot, which is older than its row.
    snapshot_id bigint,
    message_count bigint,
    bad_count bigint,
    done_at timestamptz,
    primary key (writer, number)
);

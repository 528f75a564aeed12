-- A row is a snapshot of a source, at which one run of a backfill read its ranges.
create table postbus_data.backfill_snapshot (
    id bigint generated always as identity primary key,
    pipeline text collate "C" not null references postbus_data.pipeline on delete cascade,
    run uuid not null,
    -- The transactions of the source that the snapshot sees.
    snapshot pg_snapshot not null,
    -- The source's WAL position just before the snapshot.
    wal_lsn pg_lsn not null,
    opened_at timestamptz not null default clock_timestamp(),
    -- Since then no range may begin at this snapshot.
    closed_at timestamptz
);

-- A row is a range of a backfill's key: rows with after_key < key <= to_key in the order of the source. Ranges are decided
-- when the backfill first begins, so every row of the source always belongs to one range.
create table postbus_data.backfill_range (
    pipeline text collate "C" not null references postbus_data.pipeline on delete cascade,
    -- Names one execution of the backfill; running it again has another name.
    writer text collate "C" not null,
    number integer not null,
    -- The values of the key columns as text. Null is before the first row or after the last.
    after_key text[],
    to_key text[],
    -- The range is instead of the rows that have no value in a column of the key.
    is_of_nulls boolean not null,
    -- Set by the transaction that published the range: its snapshot and counts. No foreign key: that transaction may run at
    -- the snapshot, which is older than its row.
    snapshot_id bigint,
    message_count bigint,
    bad_count bigint,
    done_at timestamptz,
    primary key (writer, number)
);

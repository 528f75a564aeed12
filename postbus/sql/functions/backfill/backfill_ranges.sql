create or replace function postbus.backfill_ranges(pipeline text)
returns table (
    number integer,
    after_key text[],
    to_key text[],
    is_of_nulls boolean,
    message_count bigint,
    bad_count bigint,
    snapshot pg_snapshot,
    wal_lsn pg_lsn,
    done_at timestamptz
)
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
The ranges of a backfill, in order of the key, and at which snapshot of the source each was read.

after_key, to_key  rows with after_key < key <= to_key: the values of the key's columns as text; null is before the first, and behind the last row. With
                   is_of_nulls, the rows that have no value in a column of the key.
snapshot           null until the range is published. A change of the source is in a row of the range if pg_visible_in_snapshot(its transaction, snapshot): who
                   follows the WAL passes over it, and takes all other changes of the range.
wal_lsn            where the source's WAL was just before. A commit may be written shortly before its effects can be seen, so following has to begin earlier: with a
                   replication slot that was there before the backfill.
*/
    select r.number, r.after_key, r.to_key, r.is_of_nulls, r.message_count, r.bad_count, s.snapshot, s.wal_lsn, r.done_at
    from postbus_data.backfill_range as r
    left join postbus_data.backfill_snapshot as s on s.id = r.snapshot_id
    where r.pipeline = backfill_ranges.pipeline
        and r.writer = (select p.plan ->> 'writer' from postbus_data.pipeline as p where p.name = backfill_ranges.pipeline)
    order by r.number
$$;

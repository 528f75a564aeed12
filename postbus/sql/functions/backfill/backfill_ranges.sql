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
The ranges of a backfill, in order of the key, each with the snapshot of the source at which it was read.

after_key, to_key  the range holds rows with after_key < key <= to_key. Bounds are the key's column values as text; null is before
                   the first row or after the last. With is_of_nulls, the rows that have no value in a column of the key.
snapshot           null until the range is published. The range includes a change of the source if
                   pg_visible_in_snapshot(the change's transaction, snapshot). To continue with change data capture, skip these
                   changes and apply all others.
wal_lsn            the source's WAL position just before the snapshot. A commit may be in the WAL shortly before its effects are
                   visible, so start earlier: with a replication slot created before the backfill.

Returns  a row for each range of the pipeline's latest plan; none for an unknown pipeline.
*/
    select r.number, r.after_key, r.to_key, r.is_of_nulls, r.message_count, r.bad_count, s.snapshot, s.wal_lsn, r.done_at
    from postbus_data.backfill_range as r
    left join postbus_data.backfill_snapshot as s on s.id = r.snapshot_id
    where r.pipeline = backfill_ranges.pipeline
        and r.writer = (select p.plan ->> 'writer' from postbus_data.pipeline as p where p.name = backfill_ranges.pipeline)
    order by r.number
$$;

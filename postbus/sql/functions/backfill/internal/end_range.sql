create or replace function postbus_data.end_range(
    snapshot_id bigint,
    writer text,
    number integer,
    message_count bigint,
    bad_count bigint
)
returns void
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
/* Record that this transaction publishes a range of a backfill, as it was at a snapshot. */
    update postbus_data.backfill_range as r
    set snapshot_id = end_range.snapshot_id,
        message_count = end_range.message_count,
        bad_count = end_range.bad_count,
        done_at = clock_timestamp()
    where r.writer = end_range.writer
        and r.number = end_range.number
$$;

create or replace function postbus_data.close_snapshot(snapshot_id bigint)
returns void
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
/* Let no more ranges begin at a snapshot. Ranges that have begun are finished. */
    update postbus_data.backfill_snapshot as s
    set closed_at = clock_timestamp()
    where s.id = snapshot_id
        and s.closed_at is null
$$;

create or replace function postbus_data.open_snapshot(pipeline text, run uuid, snapshot pg_snapshot, wal_lsn pg_lsn)
returns bigint
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
/*
Record a snapshot of the source, at which a run of a backfill will read.

Returns  its number.
Raises   PB409 when another run has replaced this one.
Locks    the pipeline's row.
*/
declare
    new_id bigint;
begin
    perform postbus_data.hold_pipeline(open_snapshot.pipeline, open_snapshot.run);
    insert into postbus_data.backfill_snapshot (pipeline, run, snapshot, wal_lsn)
    values (open_snapshot.pipeline, open_snapshot.run, open_snapshot.snapshot, open_snapshot.wal_lsn)
    returning id into new_id;
    return new_id;
end
$$;

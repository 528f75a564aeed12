create or replace function postbus.drop_schedule(stream text, name text)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Remove a recurring schedule. What it has published stays.

Raises   PB404 for an unknown stream or schedule.
Touches  schedule, scheduled, schedule_run (delete).
Locks    the schedule.
*/
declare
    dropped postbus_data.schedule := postbus_data.lock_schedule(stream, name);
begin
    delete from postbus_data.schedule as s where s.id = dropped.id;
end
$$;

create or replace function postbus.pause_schedule(stream text, name text)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Stop a recurring schedule until it is resumed. Times that pass while it is paused are not published later.

Raises   PB404 for an unknown stream or schedule.
Touches  schedule (update), scheduled (delete).
Locks    the schedule.
*/
declare
    paused postbus_data.schedule := postbus_data.lock_schedule(stream, name);
begin
    update postbus_data.schedule as s set paused = true where s.id = paused.id;
    perform postbus_data.refill_schedule(paused.id);
end
$$;

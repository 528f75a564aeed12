create or replace function postbus.resume_schedule(stream text, name text)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Continue a recurring schedule that was paused, from now on. Nothing happens to one that is not paused.

Raises   PB404 for an unknown stream or schedule.
Touches  schedule (update).
Locks    the schedule.
*/
declare
    resumed postbus_data.schedule := postbus_data.lock_schedule(stream, name);
begin
    if resumed.paused then
        update postbus_data.schedule as s set paused = false where s.id = resumed.id;
        perform postbus_data.refill_schedule(resumed.id);
    end if;
end
$$;

create or replace function postbus.run_schedule(stream text, name text)
returns bigint
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Publish the message of a recurring schedule now, also when it is paused. Its times stay as they are.

Returns  the message's seq.
Raises   PB404 for an unknown stream or schedule, and as publish.
Touches  schedule_run (insert, delete), and what postbus.publish touches.
Locks    the schedule, and what postbus.publish locks.
*/
declare
    wanted postbus_data.schedule := postbus_data.lock_schedule(stream, name);
begin
    return postbus_data.publish_occurrence(stream, wanted, null);
end
$$;

create or replace function postbus_data.wait_for_partition(consumer_id integer, partition integer)
returns boolean
language plpgsql
volatile
as $$
/*
Wait for the mutex of a partition that another session holds, for up to 100 ms: where there is only one partition, receives take turns. A session
that waits for a lock wakes up as soon as it is free, and in the order in which sessions came.

Returns  whether this transaction holds it now.
*/
declare
    former text := current_setting('lock_timeout');
begin
    perform set_config('lock_timeout', '100ms', true);
    perform pg_advisory_xact_lock(postbus_data.consumer_lock_class(consumer_id), partition);
    perform set_config('lock_timeout', former, true);
    return true;
exception when lock_not_available then
    return false;
end
$$;

create or replace function postbus_data.pulse_of_consumers(
    consumer_ids bigint[],
    caller postbus.caller default postbus.current_caller()
)
returns table (wake boolean, next_seconds double precision)
language sql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/* consumers_to_wake, as the library of release 0.1.0 calls it. */
    select w.wake, w.next_seconds from postbus_data.consumers_to_wake(consumer_ids, caller) as w
$$;

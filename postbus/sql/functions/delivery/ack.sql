create or replace function postbus.ack(
    stream text,
    consumer text,
    ack_ids text[],
    caller postbus.caller default postbus.current_caller()
)
returns integer
language plpgsql
volatile
security definer
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
set search_path = pg_catalog, pg_temp
as $$
/*
Finish the deliveries named by these ack ids, in the caller's transaction.

Returns  how many were finished by this call. One that was acked or nacked before, or has expired and been swept, is not counted: it
         may be with somebody else by now.
Raises   PB404, PB412 outside READ COMMITTED.
Touches  lease, settled (delete), or settled (insert) for part of a lease.
Locks    the leases, in order of their tokens.
*/
declare
    reader postbus_data.consumer := postbus_data.permitted_consumer(caller, stream, consumer);
begin
    perform postbus_data.check_isolation();
    return postbus_data.ack_deliveries(reader.id, reader.epoch, ack_ids);
end
$$;

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
Ack deliveries by their ack ids, in the caller's transaction: they are finished.

Returns  how many this call finished. A delivery that was settled before is not counted, nor one whose lease has expired once its message
         was given out again. Until then a late ack counts, also of a message that has become a dead letter.
Raises   PB400 for what is not an ack id, PB403 without the right to consume, PB404 for an unknown stream or consumer, PB412 outside READ COMMITTED.
Touches  lease, settled (delete), or settled (insert) for part of a lease; history (insert) when the consumer keeps one.
Locks    the leases, in order of their tokens.
*/
declare
    reader postbus_data.consumer := postbus_data.permitted_consumer(caller, stream, consumer);
begin
    perform postbus_data.check_isolation();
    return postbus_data.ack_deliveries(reader.id, reader.epoch, ack_ids);
end
$$;

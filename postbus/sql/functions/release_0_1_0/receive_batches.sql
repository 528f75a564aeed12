create or replace function postbus_data.receive_batches(
    stream text,
    consumer text,
    max_messages integer,
    ack_wait interval,
    expected_type text,
    ack_ids text[],
    caller postbus.caller default postbus.current_caller()
)
returns table (acked integer, batch postbus_data.batch)
language sql
volatile
security definer
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
set search_path = pg_catalog, pg_temp
as $$
/* ack_and_receive_in_any_session, as the library of release 0.1.0 calls it. */
    select s.acked, s.batch from postbus_data.serve(stream, consumer, max_messages, ack_wait, expected_type, ack_ids, caller) as s
$$;

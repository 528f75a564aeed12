create or replace function postbus_data.ack_and_receive_in_any_session(
    stream text,
    consumer text,
    max_messages integer,
    ack_wait interval,
    expected_type text,
    ack_ids text[],
    by_position boolean,
    caller postbus.caller default postbus.current_caller()
)
returns table (
    acked integer, lease text, partition integer, seqs bigint[], attempts integer[], keys text[], data text[], bytes bytea[], headers jsonb[],
    published_at timestamptz[], saved json
)
language sql
volatile
security definer
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
set search_path = pg_catalog, pg_temp
as $$
/* ack_and_receive for sessions that are not the library's own: it sets the planner settings itself. */
    select s.* from postbus_data.ack_and_receive(stream, consumer, max_messages, ack_wait, expected_type, ack_ids, by_position, caller) as s
$$;

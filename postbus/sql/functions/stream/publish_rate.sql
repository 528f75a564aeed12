create or replace function postbus.publish_rate(
    stream text,
    span interval default interval '1 minute',
    caller postbus.caller default postbus.current_caller()
)
returns double precision
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
About how many messages per second were published to a stream in the last minute, or in another span. Counted by seqs, which
have gaps.

Raises   PB404 for an unknown stream or one on which the caller has no right, PB412 outside READ COMMITTED, PB503 on a standby.
*/
declare
    found_id integer := postbus_data.permitted_stream(caller, stream, 'publish', 'consume', 'read');
    last_seq bigint := postbus_data.horizon_of(found_id);
    since_seq bigint := postbus_data.seq_since(found_id, clock_timestamp() - span);
begin
    return coalesce(greatest(0, last_seq - since_seq + 1), 0) / greatest(0.001, extract(epoch from span));
end
$$;

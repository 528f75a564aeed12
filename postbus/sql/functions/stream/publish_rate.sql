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
About how many messages a second were published to a stream in the last minute, or another span: by their seqs, which have gaps.

Raises   PB404, PB412 outside READ COMMITTED.
*/
declare
    found_id integer := postbus_data.permitted_stream(caller, stream, 'publish', 'consume', 'read');
    last_seq bigint := postbus_data.horizon_of(found_id);
    since_seq bigint := postbus_data.seq_since(found_id, clock_timestamp() - span);
begin
    return coalesce(greatest(0, last_seq - since_seq + 1), 0) / greatest(0.001, extract(epoch from span));
end
$$;

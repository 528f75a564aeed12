create or replace function postbus_data.spark_end(
    stream text,
    after_seq bigint,
    up_to_seq bigint default null,
    max_messages bigint default null,
    max_bytes bigint default null,
    caller postbus.caller default postbus.current_caller()
)
returns bigint
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
The end of a streaming query's batch that begins after a seq: everything complete, or at most max_messages of it. The same range
always gives the same messages.

up_to_seq  no further than this.
max_bytes  about this size, by the average size of the stream's messages.

Returns  the last seq of the batch; after_seq when there is nothing to read.
Raises   PB404 for an unknown stream, PB412 outside READ COMMITTED, PB503 on a standby.
Locks    nothing; its commit waits for the disk when the batch is not empty (see spark_flush).
*/
declare
    found_id integer := postbus_data.permitted_stream(caller, stream, 'consume', 'read');
    last_seq bigint := least(postbus_data.horizon_of(found_id), up_to_seq);
    first_seq bigint;
    info postbus.stream_info;
begin
    if last_seq <= after_seq then
        return after_seq;
    end if;
    first_seq := postbus_data.next_seq(found_id, after_seq);
    if first_seq is null or first_seq > last_seq then
        return after_seq;
    end if;
    if max_bytes is not null then
        info := postbus.stream_info(stream, caller);
        max_messages := least(max_messages, greatest(1, max_bytes / greatest(1, info.bytes / greatest(1, info.message_estimate))));
    end if;
    last_seq := least(last_seq, first_seq - 1 + max_messages);
    perform postbus_data.spark_flush();
    return last_seq;
end
$$;

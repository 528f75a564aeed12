create or replace function postbus_data.ack_and_receive(
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
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Ack, then receive, in one call: a worker's main operation.

ack_ids      null acks nothing.
by_position  the consumer is a group. Without an ack_wait, messages are claimed without a lease; with one, a range is leased,
             and ack_ids are tokens of ranges.

It sets the search_path alone: more settings would cost as much as finding a message. The calling session has those of postbus.receive.
For the first streams that a session uses, the library calls a faster function written for the stream; see
create_receive_function.

Returns  a row for each lease, with the number of acked messages in each row; one row without a lease when nothing was received.
*/
declare
    reader postbus_data.consumer := postbus_data.permitted_consumer(caller, stream, consumer);
begin
    acked := 0;
    if ack_ids is not null then
        acked := postbus_data.ack_deliveries(reader.id, reader.epoch, ack_ids);
    end if;
    return query select ack_and_receive.acked, b.* from postbus_data.receive_with_decisions(reader, max_messages, ack_wait, expected_type, by_position, null) as b;
    if not found then
        return next;
    end if;
end
$$;

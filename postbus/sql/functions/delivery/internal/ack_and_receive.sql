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
    published_at timestamptz[]
)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Ack, then receive: one call for what a worker does all day.

ack_ids      null acks nothing.
by_position  the consumer is a group: without an ack_wait what is received is given for good, with one it is a range with a lease, and ack_ids are the tokens of
             ranges.

It has no settings of its own, which would cost more than finding a message: the session that calls it has those of postbus.receive. The first
streams that a session uses have a faster function of their own; see create_receive_function.

Returns  a row for each lease, with the count of what was acked in each; one without a lease when nothing was received.
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

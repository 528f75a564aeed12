create or replace function postbus_data.serve(
    stream text,
    consumer text,
    max_messages integer,
    ack_wait interval,
    expected_type text,
    ack_ids text[]
)
returns table (acked integer, batch postbus_data.batch)
language plpgsql
volatile
as $$
/*
Ack, then receive: one call for what a worker does all day. Null for ack_ids acks nothing.

It has no settings of its own, which would cost more than finding a message: the session that calls it has those of postbus.receive. The first
streams that a session uses have a faster function of their own; see write_server.

Returns  a row for each lease, with the count of what was acked in each; one without a lease when nothing was received.
*/
declare
    reader postbus_data.consumer := postbus_data.find_consumer(stream, consumer);
begin
    acked := 0;
    if ack_ids is not null then
        acked := postbus_data.finish(reader.id, reader.epoch, ack_ids);
    end if;
    for batch in select b.* from postbus_data.claim_batches(reader, max_messages, ack_wait, expected_type, null) as b loop
        return next;
    end loop;
    if not found then
        return next;
    end if;
end
$$;

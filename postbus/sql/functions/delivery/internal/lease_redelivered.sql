create or replace function postbus_data.lease_redelivered(
    reader postbus_data.consumer,
    claim postbus_data.receive_state,
    place postbus_data.position,
    origin integer,
    seqs bigint[],
    attempts integer[]
)
returns postbus.delivery[]
language plpgsql
volatile
as $$
/*
In the orders "key" and "partition": lease messages of a partition that had failed or were parked. Its position does not move.

origin   the partition that they were published to: that of the place, or one of an older layout.

Its caller holds the mutex of the place.
Returns  the deliveries; messages that were purged or have expired since are left out.
Touches  lease, position (insert; delete of the last position).
*/
declare
    token bigint := postbus_data.new_token();
    messages postbus.delivery[] := postbus_data.fetch_named(
        reader.stream_id, claim.data_type, origin, seqs, attempts, token, live_only => true
    );
begin
    perform postbus_data.add_dead_letters_without_message(reader, origin, seqs, attempts, messages);
    if messages is not null then
        insert into postbus_data.lease (
            token, consumer_id, epoch, partition, seqs, keys, attempts, received_at, deadline, has_history, has_saved
        )
        select
            token, reader.id, reader.epoch, origin, array_agg(m.seq), array_agg(m.key), array_agg(m.attempt), clock_timestamp(),
            claim.lease_until, reader.keep_history is not null, postbus_data.has_saved(reader.id, seqs)
        from unnest(messages) as m;
        place.leases := place.leases || token;
        place.pending_bound := place.pending_bound + cardinality(messages);
    end if;
    perform postbus_data.advance_position(place, place.read_to_seq);
    return messages;
end
$$;

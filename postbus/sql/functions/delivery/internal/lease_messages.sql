create or replace function postbus_data.lease_messages(
    reader postbus_data.consumer,
    claim postbus_data.receive_state,
    seqs bigint[],
    keys text[],
    last_seq bigint
)
returns text
language plpgsql
volatile
as $$
/*
Lease messages of a partition, and move the position to last_seq. Hot: one statement.

Its caller holds the partition's mutex.
Returns  the lease's token in hexadecimal, with which the ack ids of these deliveries begin.
Touches  lease, position (insert; delete of the last position). As advance_position for a level other than the default.
*/
#variable_conflict use_variable
declare
    token bigint := postbus_data.new_token();
    place postbus_data.position := claim.place;
    is_ordered boolean := reader.ordering <> 'none';
    is_default boolean := place.partition < 100000000;
begin
    with last_place as (
        delete from postbus_data.position as p
        where p.consumer_id = place.consumer_id
            and p.epoch = place.epoch
            and p.partition = place.partition
            and p.read_to_seq = place.read_to_seq
    ),
    leased as (
        insert into postbus_data.lease (token, consumer_id, epoch, partition, seqs, keys, received_at, deadline, has_history)
        values (
            token, place.consumer_id, place.epoch, place.partition, seqs, case when is_ordered then keys end, clock_timestamp(), claim.lease_until,
            reader.keep_history is not null
        )
    )
    insert into postbus_data.position (
        consumer_id, epoch, partition, read_to_seq, horizon, pending_bound, segment, leases, parked_from, parked_count, expired_count, missed_count,
        pending_since
    )
    values (
        place.consumer_id, place.epoch, place.partition, last_seq, place.horizon,
        case when is_default then place.pending_bound + cardinality(seqs) else 0 end, place.segment,
        case when is_ordered and is_default then place.leases || token end, place.parked_from, place.parked_count, place.expired_count,
        place.missed_count, case when place.pending_since is not null and is_default then least(place.pending_since, claim.lease_until) end
    );
    if not is_default then
        perform postbus_data.save_slot(
            place, case when is_ordered then place.leases || token end, place.pending_bound + cardinality(seqs),
            case when place.pending_since is not null then least(place.pending_since, claim.lease_until) end
        );
    end if;
    return lpad(to_hex(token), 16, '0');
end
$$;

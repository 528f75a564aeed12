create or replace function postbus_data.take(reader postbus_data.consumer, claim postbus_data.claim, seqs bigint[])
returns text
language plpgsql
volatile
as $$
/*
Lease messages of a partition, and move the position behind them. Hot: one statement.

Its caller holds the partition's mutex.
Returns  what the ack ids of these deliveries begin with.
Touches  lease, position (insert; delete of the last position).
*/
#variable_conflict use_variable
declare
    token bigint := postbus_data.new_token();
    place postbus_data.position := claim.place;
    taken integer := cardinality(seqs);
begin
    with last_place as (
        delete from postbus_data.position as p
        where p.consumer_id = place.consumer_id
            and p.epoch = place.epoch
            and p.partition = place.partition
            and p.hi = place.hi
    ),
    leased as (
        insert into postbus_data.lease (token, consumer_id, epoch, partition, seqs, received_at, deadline)
        values (token, place.consumer_id, place.epoch, place.partition, seqs, clock_timestamp(), claim.lease_until)
    )
    insert into postbus_data.position (consumer_id, epoch, partition, hi, horizon, pending_bound, segment, lease_token)
    values (
        place.consumer_id, place.epoch, place.partition, seqs[taken], place.horizon, place.pending_bound + taken, place.segment, token
    );
    return lpad(to_hex(token), 16, '0') || '-';
end
$$;

create or replace function postbus_data.save_slot(
    place postbus_data.position,
    leases bigint[],
    pending_bound integer,
    pending_since timestamptz
)
returns void
language plpgsql
volatile
as $$
/*
What is in flight is recorded with the partition of the default level, for the same partition of all levels: so no two messages of a key are in flight,
whatever their levels, and the limit of messages in flight counts all of them.

place  of the same partition in another level.

Its caller holds the partition's mutex.
Touches  position (insert; delete of the last one).
*/
#variable_conflict use_variable
declare
    slot postbus_data.position;
begin
    select p.*
    into slot
    from postbus_data.position as p
    where p.consumer_id = place.consumer_id
        and p.epoch = place.epoch
        and p.partition = mod(place.partition, 100000000)
    order by p.read_to_seq desc
    limit 1;
    if slot.read_to_seq is null then
        slot := postbus_data.first_position(c, mod(place.partition, 100000000), c.start_after)
        from postbus_data.consumer as c
        where c.id = place.consumer_id;
    elsif slot.pending_bound = pending_bound and slot.leases is not distinct from leases and slot.pending_since is not distinct from pending_since then
        return;
    end if;
    slot.leases := leases;
    slot.pending_bound := pending_bound;
    slot.pending_since := pending_since;
    perform postbus_data.write_position(slot, slot.read_to_seq);
end
$$;

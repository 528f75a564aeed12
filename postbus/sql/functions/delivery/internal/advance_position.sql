create or replace function postbus_data.advance_position(place postbus_data.position, to_seq bigint)
returns void
language plpgsql
volatile
as $$
/*
Write the position of a partition, moved to a seq up to which nothing is left to lease. In a level other than the default, what is in flight is saved
where it belongs, see save_slot.

Its caller holds the partition's mutex.
Touches  position (insert; delete of the last position).
*/
begin
    if place.partition >= 100000000 then
        perform postbus_data.save_slot(place, place.leases, place.pending_bound, place.pending_since);
        place.leases := null;
        place.pending_bound := 0;
        place.pending_since := null;
        perform postbus_data.write_position(place, to_seq);
        return;
    end if;
    delete from postbus_data.position as p
    where p.consumer_id = place.consumer_id
        and p.epoch = place.epoch
        and p.partition = place.partition
        and p.read_to_seq = place.read_to_seq;
    place.read_to_seq := to_seq;
    insert into postbus_data.position select place.*;
end
$$;

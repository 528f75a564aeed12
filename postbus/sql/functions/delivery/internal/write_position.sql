create or replace function postbus_data.write_position(place postbus_data.position, to_seq bigint)
returns void
language plpgsql
volatile
as $$
/*
Write the position of a partition as it is, moved to a seq up to which nothing is left to lease.

Its caller holds the partition's mutex.
Touches  position (insert; delete of the last position).
*/
begin
    delete from postbus_data.position as p
    where p.consumer_id = place.consumer_id
        and p.epoch = place.epoch
        and p.partition = place.partition
        and p.read_to_seq = place.read_to_seq;
    place.read_to_seq := to_seq;
    insert into postbus_data.position select place.*;
end
$$;

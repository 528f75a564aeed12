create or replace function postbus_data.first_position(reader postbus_data.consumer, partition integer, read_to_seq bigint)
returns postbus_data.position
language plpgsql
volatile
as $$
/* The position of a partition that has not been read yet. */
declare
    place postbus_data.position;
begin
    place.consumer_id := reader.id;
    place.epoch := reader.epoch;
    place.partition := partition;
    place.read_to_seq := read_to_seq;
    place.horizon := 0;
    place.pending_bound := 0;
    place.segment := 0;
    place.parked_count := 0;
    place.expired_count := 0;
    place.missed_count := 0;
    return place;
end
$$;

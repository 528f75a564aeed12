create or replace function postbus_data.position_of(reader postbus_data.consumer, partition integer)
returns postbus_data.position
language plpgsql
volatile
as $$
/* The position of a consumer in a partition. */
#variable_conflict use_variable
declare
    place postbus_data.position;
begin
    place := (
        select p
        from postbus_data.position as p
        where p.consumer_id = reader.id
            and p.epoch = reader.epoch
            and p.partition = partition
        order by p.read_to_seq desc
        limit 1
    );
    if place.read_to_seq is null then
        place := postbus_data.first_position(reader, partition, reader.start_after);
    end if;
    return place;
end
$$;

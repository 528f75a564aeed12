create or replace function postbus_data.redelivery_position_of(reader postbus_data.consumer, lane integer default 0)
returns postbus_data.redelivery_position
language plpgsql
volatile
as $$
/* The position of a consumer in its redelivery log of a level; 0 if it has not begun. */
declare
    place postbus_data.redelivery_position;
begin
    select p.* into place
    from postbus_data.redelivery_position as p
    where p.consumer_id = reader.id
        and p.epoch = reader.epoch
        and p.lane = redelivery_position_of.lane
    order by p.read_to_n desc
    limit 1;
    if place.read_to_n is null then
        place := row(reader.id, reader.epoch, 0, 0, lane);
    end if;
    return place;
end
$$;

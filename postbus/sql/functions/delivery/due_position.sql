create or replace function postbus_data.due_position(reader postbus_data.consumer)
returns postbus_data.position
language plpgsql
volatile
as $$
/* How far a consumer has read its redelivery log; 0 if it has not begun. */
declare
    place postbus_data.position;
begin
    select p.* into place
    from postbus_data.position as p
    where p.consumer_id = reader.id
        and p.epoch = reader.epoch
        and p.partition = -1
    order by p.read_to_seq desc
    limit 1;
    if place.read_to_seq is null then
        place := postbus_data.first_position(reader, -1, 0);
    end if;
    return place;
end
$$;

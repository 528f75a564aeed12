create or replace function postbus_data.sweep_mark(reader postbus_data.consumer)
returns postbus_data.position
language plpgsql
volatile
as $$
/* Up to which moment a consumer was swept, in microseconds: read_to_seq, and for the last full pass horizon. 0 if never. */
declare
    mark postbus_data.position;
begin
    select p.* into mark
    from postbus_data.position as p
    where p.consumer_id = reader.id
        and p.epoch = reader.epoch
        and p.partition = -2
    order by p.read_to_seq desc
    limit 1;
    if mark.read_to_seq is null then
        mark := postbus_data.first_position(reader, -2, 0);
    end if;
    return mark;
end
$$;

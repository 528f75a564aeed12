create or replace function postbus_data.permitted_consumer(caller postbus.caller, stream text, consumer text)
returns postbus_data.consumer
language plpgsql
stable
as $$
/* The row of a consumer, if the caller may consume its stream. Raises PB403, PB404. */
declare
    found_consumer postbus_data.consumer;
begin
    -- Select the whole row: column by column would take twice as long.
    found_consumer := (
        select c
        from postbus_data.consumer as c
        where c.stream_name = permitted_consumer.stream
            and c.name = permitted_consumer.consumer
    );
    if found_consumer.id is null or not postbus_data.has_right(caller, found_consumer.stream_id, 'consume') then
        perform postbus_data.permitted_stream(caller, stream, 'consume');
        return postbus_data.find_consumer(stream, consumer);
    end if;
    return found_consumer;
end
$$;

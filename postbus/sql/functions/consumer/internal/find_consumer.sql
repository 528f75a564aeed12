create or replace function postbus_data.find_consumer(stream text, consumer text)
returns postbus_data.consumer
language plpgsql
stable
as $$
/* The row of a consumer. Raises PB404 when the stream or the consumer does not exist. */
declare
    found_consumer postbus_data.consumer;
begin
    -- Select the whole row: column by column would take twice as long.
    found_consumer := (
        select c
        from postbus_data.consumer as c
        where c.stream_name = find_consumer.stream
            and c.name = find_consumer.consumer
    );
    if found_consumer.id is null then
        perform postbus_data.raise_unknown_consumer(stream, consumer, false);
    end if;
    return found_consumer;
end
$$;

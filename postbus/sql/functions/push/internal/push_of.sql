create or replace function postbus_data.push_of(stream text, consumer text)
returns postbus_data.push
language plpgsql
as $$
/* The endpoint of a consumer, locked until the transaction ends. Raises PB404 for an unknown stream or consumer, or one without an endpoint. */
declare
    endpoint postbus_data.push;
    reader_id integer := (postbus_data.find_consumer(stream, consumer)).id;
begin
    select p.* into endpoint from postbus_data.push as p where p.consumer_id = reader_id for update;
    if endpoint.consumer_id is null then
        raise exception using
            errcode = 'PB404',
            message = format('consumer "%s" of stream "%s" has no endpoint', consumer, stream),
            hint = format('set one: select postbus.set_push(%L, %L, ''https://…'')', stream, consumer);
    end if;
    return endpoint;
end
$$;

create or replace function postbus.consumer_info(
    stream text,
    consumer text,
    caller postbus.caller default postbus.current_caller()
)
returns postbus.consumer_info
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
A consumer's settings.

Raises   PB403 without the right to consume, PB404 for an unknown stream or consumer.
*/
declare
    found_id integer := (postbus_data.permitted_consumer(caller, stream, consumer)).id;
    info postbus.consumer_info;
begin
    select i.* into info from postbus.list_consumers(stream) as i where i.id = found_id;
    return info;
end
$$;

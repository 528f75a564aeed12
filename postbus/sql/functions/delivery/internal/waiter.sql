create or replace function postbus_data.waiter(
    stream text,
    consumer text,
    caller postbus.caller default postbus.current_caller(),
    out consumer_id integer,
    out stream_id integer
)
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
/* The ids with which a waiting client asks stream_horizons and consumers_to_wake about a consumer. Raises PB403, PB404. */
begin
    select c.id, c.stream_id into consumer_id, stream_id from postbus_data.permitted_consumer(caller, stream, consumer) as c;
end
$$;

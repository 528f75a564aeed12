create or replace function postbus.pause(stream text, consumer text)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Stop delivering messages to a consumer until it is resumed. Messages in flight can still be acked.

Raises   PB404 for an unknown stream or consumer.
Touches  consumer (update).
*/
declare
    paused_id integer := (postbus_data.find_consumer(stream, consumer)).id;
begin
    update postbus_data.consumer as c set paused = true where c.id = paused_id;
end
$$;

create or replace function postbus.resume(stream text, consumer text)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Deliver messages to a paused consumer again.

Raises   PB404 for an unknown stream or consumer.
Touches  consumer (update).
*/
declare
    resumed_id integer := (postbus_data.find_consumer(stream, consumer)).id;
begin
    update postbus_data.consumer as c set paused = false where c.id = resumed_id;
end
$$;

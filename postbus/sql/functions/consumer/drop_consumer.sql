create or replace function postbus.drop_consumer(stream text, consumer text)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Remove a consumer with its position, leases, history and dead letters. Acks for it are refused from now on.

Raises   PB404 for an unknown stream or consumer.
Touches  consumer and all its rows (delete).
*/
declare
    dropped integer := (postbus_data.find_consumer(stream, consumer)).id;
begin
    delete from postbus_data.dead_letter as d where d.consumer_id = dropped;
    perform postbus_data.forget(dropped);
    delete from postbus_data.channel_pace as p where p.consumer_id = dropped;
    delete from postbus_data.history as h where h.consumer_id = dropped;
    delete from postbus_data.consumer as c where c.id = dropped;
end
$$;

create or replace function postbus.drop_push(stream text, consumer text)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Remove the endpoint of a consumer, with its secrets. The consumer stays where it is, and its messages can be received.

Raises   PB404 for an unknown stream or consumer, or one without an endpoint.
Touches  push, push_secret, push_state, push_test (delete).
*/
declare
    dropped integer := (postbus_data.push_of(stream, consumer)).consumer_id;
begin
    delete from postbus_data.push as p where p.consumer_id = dropped;
end
$$;

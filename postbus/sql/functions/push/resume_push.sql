create or replace function postbus.resume_push(stream text, consumer text)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Send to the endpoint of a consumer again, at once, if it is paused or rests. What is known of its failures is forgotten.

Raises   PB404 for an unknown stream or consumer, or one without an endpoint.
Touches  push (update), push_state (delete).
Locks    the endpoint's mutex.
*/
declare
    resumed_id integer := (postbus_data.push_of(stream, consumer)).consumer_id;
begin
    update postbus_data.push as p
    set paused_reason = null,
        version = p.version + 1
    where p.consumer_id = resumed_id;
    perform pg_advisory_xact_lock(postbus_data.consumer_lock_class(resumed_id), postbus_data.consumer_lock('push'));
    delete from postbus_data.push_state as s where s.consumer_id = resumed_id;
end
$$;

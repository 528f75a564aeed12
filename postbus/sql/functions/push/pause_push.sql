create or replace function postbus.pause_push(stream text, consumer text, reason text default 'paused')
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Send nothing more to the endpoint of a consumer until it is resumed. Its messages wait; none is lost.

Raises   PB404 for an unknown stream or consumer, or one without an endpoint.
Touches  push (update).
*/
declare
    paused_id integer := (postbus_data.push_of(stream, consumer)).consumer_id;
begin
    update postbus_data.push as p
    set paused_reason = left(coalesce(nullif(reason, ''), 'paused'), 200),
        version = p.version + 1
    where p.consumer_id = paused_id;
end
$$;

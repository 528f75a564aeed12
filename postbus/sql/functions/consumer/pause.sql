create or replace function postbus.pause(stream text, consumer text)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
/* Give a consumer no more messages until resume. What is in flight may be acked. Raises PB404. */
declare
    paused_id integer := (postbus_data.find_consumer(stream, consumer)).id;
begin
    update postbus_data.consumer as c set paused = true where c.id = paused_id;
end
$$;

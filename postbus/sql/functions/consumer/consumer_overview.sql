create or replace function postbus.consumer_overview(stream text, caller postbus.caller default postbus.current_caller())
returns table (
    name text,
    ordering text,
    paused boolean,
    lag_estimate bigint,
    in_flight bigint,
    redelivering bigint,
    waiting bigint,
    dead bigint,
    oldest_unread_at timestamptz,
    oldest_in_flight_at timestamptz
)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Where all consumers of a stream stand, by name: what stats says of each as a whole.

redelivering  how many of those in flight were delivered before.

Raises   PB404, PB412 outside READ COMMITTED.
*/
#variable_conflict use_column
declare
    listed integer := postbus_data.permitted_stream(caller, stream, 'consume');
begin
    return query
    select
        c.name, c.ordering, c.paused, s.lag_estimate, s.in_flight, postbus_data.in_flight(c.id, c.epoch, null, true), s.waiting, s.dead,
        s.oldest_unread_at, s.oldest_in_flight_at
    from postbus_data.consumer as c
    cross join lateral postbus.stats(c.stream_name, c.name) as s
    where c.stream_id = listed
        and s.partition is null
    order by c.name;
end
$$;

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
One row for each consumer of a stream, in order of their names: the totals that stats reports for one.

redelivering  how many of the messages in flight were delivered before.

Raises   PB403 without the right to consume, PB404 for an unknown stream, PB412 outside READ COMMITTED, PB503 on a standby.
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

create or replace function postbus.backlog(stream text, consumer text, caller postbus.caller default postbus.current_caller())
returns bigint
language sql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
About how many messages a consumer or group has to do: not given out yet, in flight, or waiting for another delivery. One number, at constant cost, for
whoever starts and stops workers by it. 0 is exact.

Raises   PB404, PB412 outside READ COMMITTED.
*/
    select s.lag_estimate + s.in_flight + s.waiting
    from postbus.stats(backlog.stream, backlog.consumer, caller) as s
    where s.partition is null
$$;

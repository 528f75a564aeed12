create or replace function postbus.backlog(stream text, consumer text, caller postbus.caller default postbus.current_caller())
returns bigint
language sql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
About how many messages a consumer or group has left to do: not delivered yet, in flight, or waiting for redelivery. One number,
at constant cost, for autoscalers.

Returns  the estimate; 0 is exact.
Raises   PB403 without the right to consume, PB404 for an unknown stream or consumer, PB412 outside READ COMMITTED, PB503 on a
         standby.
*/
    select s.lag_estimate + s.in_flight + s.waiting
    from postbus.stats(backlog.stream, backlog.consumer, caller) as s
    where s.partition is null
$$;

create or replace function postbus.backlog(stream text, consumer text, caller postbus.caller default postbus.current_caller())
returns bigint
language sql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
How many messages a consumer or group has not finished: not delivered yet, in flight, waiting for redelivery, or parked behind their key.
Dead letters and scheduled messages do not count. One number, for alerts and autoscalers.

Returns  exact up to 1,000 messages that are not delivered yet, an estimate beyond; stats.backlog_is_exact says which. 0 is exact.
Raises   PB403 without the right to consume, PB404 for an unknown stream or consumer.
*/
    select b.backlog
    from postbus_data.count_backlog((postbus_data.permitted_consumer(caller, backlog.stream, backlog.consumer)).id) as b
$$;

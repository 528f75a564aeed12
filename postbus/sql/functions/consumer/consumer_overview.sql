create or replace function postbus.consumer_overview(
    stream text default null,
    after_stream text default '',
    after_name text default '',
    max_consumers integer default 200,
    caller postbus.caller default postbus.current_caller()
)
returns table (
    stream_name text,
    name text,
    is_group boolean,
    ordering text,
    paused boolean,
    backlog bigint,
    backlog_is_exact boolean,
    lag_estimate bigint,
    in_flight bigint,
    redelivering bigint,
    waiting bigint,
    dead bigint,
    oldest_unread_at timestamptz,
    oldest_in_flight_at timestamptz,
    timed_out bigint,
    by_priority jsonb
)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
A page of consumers with their current figures, in order of stream and name: at most max_consumers after this stream and name. Of one
stream, or for null of all on which the caller has the right to consume. The columns are those that stats reports for one.

redelivering  how many of the messages in flight were delivered before.
timed_out     how many deliveries have ended because their lease expired, since the last seek.
by_priority   how many messages are not delivered yet or waiting, by each priority in use.

Raises   PB403 without the right to consume, PB404 for an unknown stream.
*/
#variable_conflict use_column
declare
    listed integer := case when stream is not null then postbus_data.permitted_stream(caller, stream, 'consume') end;
begin
    return query
    select
        c.stream_name, c.name, c.is_group, c.ordering, c.paused, b.backlog, b.is_exact, b.unread, b.in_flight, b.redelivering, b.waiting, b.dead,
        b.oldest_unread_at, b.oldest_in_flight_at, b.timed_out, b.by_priority
    from (
        select c.*
        from postbus_data.consumer as c
        where (c.stream_name, c.name) > (after_stream, after_name)
            and case
                when listed is null then postbus_data.has_right(caller, c.stream_id, 'consume')
                else c.stream_id = listed
            end
        order by c.stream_name, c.name
        limit max_consumers
    ) as c
    cross join lateral postbus_data.count_backlog(c.id) as b
    order by c.stream_name, c.name;
end
$$;

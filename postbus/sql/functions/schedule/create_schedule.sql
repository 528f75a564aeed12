create or replace function postbus.create_schedule(
    stream text,
    name text,
    cron text default null,
    every interval default null,
    time_zone text default 'UTC',
    key text default null,
    data text default null,
    headers jsonb default null,
    bytes bytea default null,
    ttl interval default null,
    catch_up text default 'latest',
    max_catch_up integer default 100,
    expected_type text default null,
    exist_ok boolean default false,
    priority integer default 4
)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Create a recurring schedule: a message that is published to a stream again and again. Each time is published once, however many
processes run. The times themselves are worked out by the Python library: by a server, a bus, or bus.upkeep, an hour ahead.

cron           five fields (or six, with seconds first), in the time zone. Python checks it; list_schedules shows a problem.
every          instead of cron: an interval of at least a second, on a grid that begins at this second.
key, data, headers, bytes, ttl, priority  the message, as for publish. It gets the headers postbus-schedule and postbus-occurrence.
catch_up       of times that were missed by more than a minute: latest publishes the last one, all up to max_catch_up, skip none.
expected_type  raise PB409 if the stream has another data type; null accepts any.
exist_ok       a schedule that exists is left as it is. What is given must be its own.

Raises   PB400 for an invalid name, setting or message, PB404 for an unknown stream, PB409 when the schedule exists (with exist_ok:
         when it differs) or for another data type, PB413 when the message is too large.
Touches  schedule (insert).
Locks    the horizon of the stream, shared, until the transaction ends.
*/
#variable_conflict use_variable
declare
    entry postbus_data.publish_target := postbus_data.begin_publish(stream, expected_type);
    settings postbus_data.schedule;
    existing postbus_data.schedule;
begin
    settings.stream_id := entry.stream_id;
    settings.name := name;
    settings.cron := cron;
    settings.every := every;
    settings.time_zone := time_zone;
    settings.key := key;
    settings.data := data;
    settings.headers := headers;
    settings.bytes := bytes;
    settings.ttl := ttl;
    settings.catch_up := catch_up;
    settings.max_catch_up := max_catch_up;
    settings.priority := coalesce(priority, 4);
    perform postbus_data.check_schedule(entry, settings);
    insert into postbus_data.schedule as s (
        stream_id, name, cron, every, time_zone, key, data, bytes, headers, ttl, catch_up, max_catch_up, created_at, filled_until, priority
    )
    values (
        entry.stream_id, name, cron, every, time_zone, key, data, bytes, headers, ttl, catch_up, max_catch_up,
        date_trunc('second', clock_timestamp()), clock_timestamp(), settings.priority
    )
    on conflict do nothing;
    if found then
        return;
    end if;
    select s.* into existing from postbus_data.schedule as s where s.stream_id = entry.stream_id and s.name = name;
    if not exist_ok
        or (existing.cron, existing.every, existing.time_zone, existing.key, existing.data, existing.bytes, existing.headers, existing.ttl,
            existing.catch_up, existing.max_catch_up, existing.priority)
            is distinct from (cron, every, time_zone, key, data, bytes, headers, ttl, catch_up, max_catch_up, settings.priority)
    then
        raise exception using
            errcode = 'PB409',
            message = format('schedule "%s" of stream "%s" already exists%s', name, stream, case when exist_ok then ', and differs' else '' end),
            hint = 'change it with alter_schedule, or drop it first';
    end if;
end
$$;

create or replace function postbus.alter_schedule(
    stream text,
    name text,
    cron text default null,
    every interval default null,
    time_zone text default null,
    key text default null,
    data text default null,
    headers jsonb default null,
    bytes bytea default null,
    ttl interval default null,
    catch_up text default null,
    max_catch_up integer default null,
    unset text[] default '{}',
    expected_type text default null,
    priority integer default null
)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Change a recurring schedule. A null leaves a setting as it is; cron replaces every, and every replaces cron and begins a new grid.

unset  settings to put back to none: key, headers, ttl.

Raises   PB400 for an invalid setting or message, PB404 for an unknown stream or schedule, PB409 for another data type, PB413 when
         the message is too large.
Touches  schedule (update), scheduled (delete): times that were filled in are worked out again.
Locks    the schedule.
*/
#variable_conflict use_variable
declare
    entry postbus_data.publish_target := postbus_data.begin_publish(stream, expected_type);
    settings postbus_data.schedule := postbus_data.lock_schedule(stream, name);
begin
    if not unset <@ array['key', 'headers', 'ttl'] then
        raise exception using errcode = 'PB400', message = 'unset may name key, headers and ttl';
    end if;
    if cron is not null or every is not null then
        settings.cron := cron;
        settings.every := every;
    end if;
    settings.time_zone := coalesce(time_zone, settings.time_zone);
    settings.key := case when 'key' = any (unset) then null else coalesce(key, settings.key) end;
    settings.data := coalesce(data, settings.data);
    settings.bytes := coalesce(bytes, settings.bytes);
    settings.headers := case when 'headers' = any (unset) then null else coalesce(headers, settings.headers) end;
    settings.ttl := case when 'ttl' = any (unset) then null else coalesce(ttl, settings.ttl) end;
    settings.catch_up := coalesce(catch_up, settings.catch_up);
    settings.max_catch_up := coalesce(max_catch_up, settings.max_catch_up);
    settings.priority := coalesce(priority, settings.priority);
    perform postbus_data.check_schedule(entry, settings);
    update postbus_data.schedule as s
    set cron = settings.cron,
        every = settings.every,
        time_zone = settings.time_zone,
        key = settings.key,
        data = settings.data,
        bytes = settings.bytes,
        headers = settings.headers,
        ttl = settings.ttl,
        catch_up = settings.catch_up,
        max_catch_up = settings.max_catch_up,
        priority = settings.priority,
        created_at = case when every is not null then date_trunc('second', clock_timestamp()) else s.created_at end
    where s.id = settings.id;
    perform postbus_data.refill_schedule(settings.id, keep_due => every is null and not settings.paused);
end
$$;

create or replace function postbus_data.check_schedule(entry postbus_data.publish_target, settings postbus_data.schedule)
returns void
language plpgsql
as $$
/* Raise PB400 or PB413 for settings or a message that a recurring schedule cannot have. Cron and time zone are checked by Python. */
declare
    problem text;
begin
    perform postbus_data.check_name('schedule', settings.name);
    problem := case
        when num_nonnulls(settings.cron, settings.every) <> 1 then 'a schedule has either cron or every'
        when length(settings.cron) > 200 then 'cron has more than 200 characters'
        when settings.every not between interval '1 second' and interval '3650 days'
            then format('every = %s is not between 1 second and 3650 days', settings.every)
        when settings.time_zone is null or length(settings.time_zone) not between 1 and 100 then 'time_zone is missing'
        when (settings.catch_up in ('latest', 'skip', 'all')) is not true
            then format('catch_up = %L is not one of latest, skip, all', settings.catch_up)
        when settings.priority not between 0 and 9 then format('priority = %s is not between 0 and 9', settings.priority)
        when (settings.max_catch_up between 1 and 1000) is not true
            then format('max_catch_up = %s is not between 1 and 1000', settings.max_catch_up)
    end;
    if problem is not null then
        raise exception using errcode = 'PB400', message = problem;
    end if;
    perform postbus_data.check_ttl(settings.ttl);
    perform postbus_data.raise_invalid_message(entry, null, settings.key, settings.data, settings.headers, settings.bytes);
    if entry.data_type = 'json' then
        perform postbus_data.as_json(settings.data, null);
    end if;
end
$$;

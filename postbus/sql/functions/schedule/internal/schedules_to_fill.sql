create or replace function postbus_data.schedules_to_fill()
returns table (
    id integer,
    version integer,
    cron text,
    every interval,
    time_zone text,
    catch_up text,
    max_catch_up integer,
    created_at timestamptz,
    filled_until timestamptz,
    now_at timestamptz
)
language sql
volatile
as $$
/* Recurring schedules whose times have to be worked out: those that are filled in for less than half an hour. */
    select s.id, s.version, s.cron, s.every, s.time_zone, s.catch_up, s.max_catch_up, s.created_at, s.filled_until, clock_timestamp()
    from postbus_data.schedule as s
    where not s.paused
        and s.problem is null
        and s.filled_until < clock_timestamp() + interval '30 minutes'
    order by s.filled_until
    limit 100
$$;

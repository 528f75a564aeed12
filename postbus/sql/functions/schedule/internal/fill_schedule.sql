create or replace function postbus_data.fill_schedule(
    schedule_id integer,
    version integer,
    filled_from timestamptz,
    filled_until timestamptz,
    occurrences timestamptz[],
    problem text default null
)
returns boolean
language plpgsql
volatile
as $$
/*
Fill in times of a recurring schedule, unless it has changed or somebody was faster. So each time is filled in once, whoever works it out.

filled_from  up to where it was filled in.
problem      why no times can be worked out: the schedule rests until it is altered.

Returns  whether this call did it.
Touches  schedule (update), scheduled (insert).
Locks    the schedule.
*/
#variable_conflict use_variable
declare
    filled postbus_data.schedule;
begin
    update postbus_data.schedule as s
    set filled_until = filled_until,
        problem = problem
    where s.id = schedule_id
        and s.version = version
        and s.filled_until = filled_from
        and not s.paused
    returning s.* into filled;
    if filled.id is null then
        return false;
    end if;
    insert into postbus_data.scheduled (stream_id, deliver_at, schedule_id, occurrence)
    select filled.stream_id, o.at, filled.id, o.at
    from unnest(occurrences) as o (at)
    on conflict do nothing;
    return true;
end
$$;

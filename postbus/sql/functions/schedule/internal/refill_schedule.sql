create or replace function postbus_data.refill_schedule(schedule_id integer, keep_due boolean default false)
returns void
language plpgsql
as $$
/*
Forget the times that were filled in for a schedule, so that they are worked out again from now on.

keep_due  or from the first time that is due and not published yet.

Touches  schedule (update), scheduled (delete).
*/
declare
    first_at timestamptz := clock_timestamp();
begin
    with forgotten as (
        delete from postbus_data.scheduled as s where s.schedule_id = refill_schedule.schedule_id returning s.occurrence
    )
    select least(first_at, min(f.occurrence) filter (where keep_due) - interval '1 microsecond')
    into first_at
    from forgotten as f;
    update postbus_data.schedule as s
    set version = s.version + 1,
        filled_until = first_at,
        problem = null
    where s.id = refill_schedule.schedule_id;
end
$$;

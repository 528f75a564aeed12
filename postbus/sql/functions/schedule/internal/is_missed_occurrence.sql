create or replace function postbus_data.is_missed_occurrence(missed postbus_data.schedule, occurrence timestamptz, now_at timestamptz)
returns boolean
language plpgsql
volatile
as $$
/* Whether a time of a recurring schedule passed more than a minute ago, and is not to be caught up on. See create_schedule. */
begin
    if occurrence >= now_at - interval '1 minute' then
        return false;
    end if;
    return case missed.catch_up
        when 'skip' then true
        when 'latest' then exists (
            select
            from postbus_data.scheduled as s
            where s.schedule_id = missed.id
                and s.occurrence > is_missed_occurrence.occurrence
                and s.occurrence <= now_at
        )
        else (
            select count(*) >= missed.max_catch_up
            from (
                select
                from postbus_data.scheduled as s
                where s.schedule_id = missed.id
                    and s.occurrence > is_missed_occurrence.occurrence
                    and s.occurrence <= now_at
                limit missed.max_catch_up
            ) as later
        )
    end;
end
$$;

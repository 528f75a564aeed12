create or replace function postbus_data.empty_push_attempts()
returns integer
language plpgsql
volatile
set lock_timeout = '500ms'
as $$
/*
Empty the tables of attempts whose next turn comes, or is there and still has attempts of eight days ago.

Returns  how many.
Touches  push_attempt (truncate of a table).
Locks    that table, exclusively; a table that somebody reads is put off.
*/
declare
    now_at timestamptz := clock_timestamp();
    day integer;
    oldest timestamptz;
    emptied integer := 0;
begin
    for day in 0 .. 1 loop
        execute format(
            'select min(a.attempted_at) from (select attempted_at from postbus_data.push_attempt_%s limit 1) as a',
            postbus_data.push_slot(now_at + make_interval(days => day))
        ) into oldest;
        if oldest < now_at - interval '6 days 12 hours' then
            begin
                execute format('truncate postbus_data.push_attempt_%s', postbus_data.push_slot(now_at + make_interval(days => day)));
                emptied := emptied + 1;
            exception when lock_not_available then
                raise warning 'attempts of % are removed later: they are being read', oldest::date;
            end;
        end if;
    end loop;
    return emptied;
end
$$;

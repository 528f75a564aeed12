create or replace function postbus_data.lock_schedule(stream text, name text)
returns postbus_data.schedule
language plpgsql
as $$
/*
The recurring schedule with that name, locked until the transaction ends. Raises PB404 for an unknown stream or schedule.
*/
declare
    locked postbus_data.schedule;
    locked_stream integer := postbus_data.stream_id(stream);
begin
    select s.* into locked
    from postbus_data.schedule as s
    where s.stream_id = locked_stream
        and s.name = lock_schedule.name
    for update;
    if locked.id is null then
        raise exception using
            errcode = 'PB404',
            message = format('schedule "%s" of stream "%s" does not exist', name, stream);
    end if;
    return locked;
end
$$;

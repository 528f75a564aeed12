create or replace function postbus_data.append_scheduled(stream_id integer)
returns integer
language plpgsql
volatile
as $$
/*
Publish the scheduled messages of a stream that are due, in order of their times, at most 1,000 at once.

A message that the stream no longer accepts (its limit was lowered) is put off by a minute, with a warning; the others are
published. Of a recurring schedule, times that were missed are published as its catch_up says.

Returns  how many were published.
Touches  scheduled (delete), schedule_run (insert, delete), the stream's log (insert).
Locks    the stream's schedule; returns 0 at once when another session holds it.
*/
declare
    -- Not in the queries: a volatile function cannot be used for an index lookup, and every scheduled message would be scanned.
    now_at timestamptz := clock_timestamp();
    stream_name text;
    due record;
    recurring postbus_data.schedule;
    published integer := 0;
begin
    if not exists (
        select
        from postbus_data.scheduled as s
        where s.stream_id = append_scheduled.stream_id
            and s.deliver_at <= now_at
    ) or not pg_try_advisory_xact_lock(postbus_data.consumer_lock_class(0), -stream_id)
    then
        return 0;
    end if;
    select s.name into stream_name from postbus_data.stream as s where s.id = stream_id;
    for due in
        select s.*
        from postbus_data.scheduled as s
        where s.stream_id = append_scheduled.stream_id
            and s.deliver_at <= now_at
        order by s.deliver_at, s.id
        limit 1000
        for update skip locked
    loop
        begin
            if due.schedule_id is null then
                perform postbus.publish(stream_name, due.key, due.data, due.headers, due.bytes, ttl => due.ttl, priority => due.priority);
                published := published + 1;
            else
                select s.* into recurring from postbus_data.schedule as s where s.id = due.schedule_id;
                if not postbus_data.is_missed_occurrence(recurring, due.occurrence, now_at) then
                    perform postbus_data.publish_occurrence(stream_name, recurring, due.occurrence);
                    published := published + 1;
                end if;
            end if;
            delete from postbus_data.scheduled as s where s.stream_id = due.stream_id and s.id = due.id;
        exception when sqlstate 'PB400' or sqlstate 'PB413' then
            raise warning 'scheduled message % of stream "%" is put off: %', due.id, stream_name, sqlerrm;
            update postbus_data.scheduled as s
            set deliver_at = clock_timestamp() + interval '1 minute'
            where s.stream_id = due.stream_id
                and s.id = due.id;
        end;
    end loop;
    return published;
end
$$;

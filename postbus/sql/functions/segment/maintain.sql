create or replace function postbus.maintain(stream text default null)
returns integer
language plpgsql
volatile
as $$
/*
Do what is due on the logs: begin new segments, seal old ones, drop those whose messages were purged.

Call it every few seconds to minutes, from any number of places: one runs at a time, another returns at once. Nothing breaks
when it is late, the newest segment only becomes larger. Without a stream's name it takes up to 200 streams that need it, so
that one call cannot fill the server's lock table; call again while it returns more than 0.

Returns  how many steps were taken.
Raises   PB404 for a named stream that does not exist, PB412 outside READ COMMITTED.
*/
declare
    only_id integer := case when stream is not null then postbus_data.stream_id(stream) end;
    due_id integer;
    step_count integer := 0;
begin
    if not pg_try_advisory_xact_lock(1610612736, 0) then
        return 0;
    end if;
    for due_id in
        select d.id from postbus_data.streams_due(only_id) as d (id) limit 200
    loop
        step_count := step_count + postbus_data.maintain_log(due_id);
    end loop;
    return step_count;
end
$$;

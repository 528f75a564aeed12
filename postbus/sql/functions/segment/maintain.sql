create or replace function postbus.maintain(stream text default null)
returns integer
language plpgsql
volatile
security definer
set lock_timeout = '500ms'
set search_path = pg_catalog, pg_temp
as $$
/*
Do what is due on the logs: begin new segments, seal old ones, let go of what need not be kept, drop segments whose messages
are all gone.

Call it every few seconds to minutes, from any number of places: one works on a stream at a time, another passes it over. Nothing breaks
when it is late, the newest segment only becomes larger. Without a stream's name it takes up to 100 streams that need it, so
that one call cannot fill the server's lock table; call again while it returns more than 0. A stream that somebody has locked is put off,
with a warning.

Returns  how many steps were taken.
Raises   PB404 for a named stream that does not exist, PB412 outside READ COMMITTED: a segment would be sealed without messages that
         committed since the snapshot, and they would never be read.
*/
declare
    only_id integer := case when stream is not null then postbus_data.stream_id(stream) end;
    due_id integer;
    step_count integer := 0;
begin
    perform postbus_data.check_isolation();
    for due_id in
        select d.id from postbus_data.streams_due(only_id) as d (id) limit 100
    loop
        begin
            step_count := step_count + postbus_data.maintain_log(due_id);
        exception when lock_not_available or out_of_memory or undefined_table then
            raise warning 'maintenance of stream % is put off: %', due_id, sqlerrm;
        end;
    end loop;
    return step_count;
end
$$;

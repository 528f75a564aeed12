create or replace function postbus.maintain(stream text default null)
returns integer
language plpgsql
volatile
security definer
set lock_timeout = '500ms'
set search_path = pg_catalog, pg_temp
as $$
/*
Maintain the logs: begin new segments, seal old ones, apply retention, and drop segments whose messages are all gone.

Call it every few seconds to minutes, from any number of places: a stream that another call is maintaining is skipped. Nothing
breaks when it is late; only the newest segment grows. Without a stream's name it takes at most 100 streams that need it, so
that one call cannot fill the server's lock table; call it again while it returns more than 0. A stream that somebody has locked
is put off, with a warning.

Returns  how many steps were taken.
Raises   PB404 for an unknown stream; PB412 outside READ COMMITTED, where a segment could be sealed without messages committed
         since the snapshot, and they would never be read.
Touches  stream, segment, kept, dropped and the ids of dedup windows (insert, update, delete); creates and drops tables and
         functions; upkeep (update) and push_attempt (truncate), if no stream is given.
Locks    each stream's maintenance mutex, the tables that it drops, and the row of upkeep, until the transaction ends.
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
    if stream is null then
        perform postbus_data.empty_push_attempts();
        perform postbus_data.note_maintenance();
    end if;
    return step_count;
end
$$;

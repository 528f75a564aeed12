create or replace function postbus_data.drop_purged_segments(stream_id integer)
returns integer
language plpgsql
volatile
as $$
/*
Drop sealed segments whose messages are all gone. Messages that a consumer still holds are copied first.

Locks    each table exclusively, if that is possible at once: a reader in a long transaction puts it off to the next call, so
         that nobody has to wait behind this one.
*/
declare
    purged_number integer;
    step_count integer := 0;
begin
    for purged_number in
        select g.number
        from postbus_data.segment as g
        join postbus_data.stream as s on s.id = g.stream_id
        where g.stream_id = drop_purged_segments.stream_id
            and g.last_seq < s.start_seq
        order by g.number
        -- Each takes several entries of the server's lock table.
        limit 50
    loop
        begin
            execute format('lock table %s in access exclusive mode nowait', postbus_data.log_table(stream_id, purged_number));
            perform postbus_data.copy_held_messages(stream_id, purged_number);
            perform postbus_data.note_dropped(stream_id, purged_number);
            perform postbus_data.drop_segment(stream_id, purged_number);
            step_count := step_count + 1;
        exception when lock_not_available then
            null;
        end;
    end loop;
    return step_count;
end
$$;

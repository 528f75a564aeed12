create or replace function postbus_data.move_start(stream_id integer, new_start bigint)
returns bigint
language plpgsql
volatile
as $$
/*
Drop the messages below a seq. Its caller knows that they are complete.

Returns  the stream's start, which never moves back.
Touches  stream (update).
*/
declare
    start bigint;
begin
    update postbus_data.stream as s
    set start_seq = greatest(s.start_seq, new_start)
    where s.id = stream_id
    returning s.start_seq into start;
    -- The segment that publishers write to is dropped only after the next one is begun.
    update postbus_data.stream as s
    set roll_due = true
    where s.id = stream_id
        and s.start_seq > postbus_data.sequence_value('postbus_data.seq_' || s.id::text)
        -- An empty segment has nothing to free.
        and s.start_seq > 1 + (
            select max(g.after_seq) from postbus_data.segment as g where g.stream_id = s.id
        );
    return start;
end
$$;

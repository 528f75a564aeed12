create or replace function postbus.purge(stream text, before_seq bigint default null, before_time timestamptz default null)
returns bigint
language plpgsql
volatile
as $$
/*
Remove the messages below a seq, or published before a time, or, without either, all that are complete now.

They are gone for readers at once; their space is freed by maintenance, which drops the segments that hold nothing else.

Returns  the stream's new start: messages below this seq are gone. It never moves back.
Raises   PB400 when both bounds are given, PB404, PB412 outside READ COMMITTED.
Touches  stream (update).
*/
declare
    purged integer := postbus_data.stream_id(stream);
    horizon bigint := postbus_data.horizon_of(purged);
    new_start bigint;
begin
    if before_seq is not null and before_time is not null then
        raise exception using errcode = 'PB400', message = 'purge takes before_seq or before_time, not both';
    end if;
    update postbus_data.stream as s
    set start_seq = greatest(
        s.start_seq,
        least(
            horizon + 1,
            case
                when before_time is not null then postbus_data.seq_before(purged, before_time) + 1
                else before_seq
            end
        )
    )
    where s.id = purged
    returning s.start_seq into new_start;
    update postbus_data.stream as s
    set roll_due = true
    where s.id = purged
        and s.start_seq > pg_sequence_last_value(to_regclass('postbus_data.seq_' || s.id));
    return new_start;
end
$$;

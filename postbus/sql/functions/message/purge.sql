create or replace function postbus.purge(
    stream text,
    before_seq bigint default null,
    before_time timestamptz default null,
    everything boolean default false
)
returns bigint
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Remove the messages below a seq, those published before a time (the last second before it may stay), or everything up to the
horizon.

Readers no longer see them from now on. Maintenance frees their space when it drops the segments that hold nothing else.

Returns  the stream's new start: messages below this seq are gone. It never moves back.
Raises   PB400 unless exactly one of the three is given, PB404 for an unknown stream, PB412 outside READ COMMITTED, PB503 on a
         standby.
Touches  stream (update).
*/
declare
    purged integer := postbus_data.stream_id(stream);
    horizon bigint := postbus_data.horizon_of(purged);
    new_start bigint;
begin
    if num_nonnulls(before_seq, before_time, nullif(everything, false)) <> 1 then
        raise exception using
            errcode = 'PB400',
            message = 'purge needs to know what to remove',
            constraint = 'which_messages',
            hint = 'give exactly one of before_seq, before_time, everything => true';
    end if;
    new_start := least(
        horizon + 1,
        case
            when before_time is not null then postbus_data.seq_before(purged, before_time - interval '1 second') + 1
            when before_seq is not null then before_seq
        end
    );
    update postbus_data.stream as s set purged_seq = greatest(s.purged_seq, new_start) where s.id = purged;
    return postbus_data.move_start(purged, new_start);
end
$$;

create or replace function postbus.seek(
    stream text,
    consumer text,
    "start" text default null,
    from_seq bigint default null,
    from_time timestamptz default null
)
returns bigint
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Move a consumer to another position: start => 'earliest' or 'latest', from_seq, or from_time.

Everything in flight or waiting for redelivery is given up, and its acks are refused. Dead letters stay. Seeking begins a new
epoch: a receive running at the same moment may still return messages of the old one, whose acks are refused too.

Returns  the seq after which the consumer reads on.
Raises   PB400 unless exactly one position is given, PB404 for an unknown stream or consumer, PB412 outside READ COMMITTED,
         PB503 on a standby.
Touches  consumer (update); position, lease, settled, waiting, parked, due, saved and the consumer's other state (delete).
*/
declare
    sought postbus_data.consumer := postbus_data.find_consumer(stream, consumer);
    new_start bigint := postbus_data.start_position(sought.stream_id, "start", from_seq, from_time);
    first_segment postbus_data.segment := postbus_data.first_segment(sought.stream_id, new_start);
begin
    update postbus_data.consumer as c
    set epoch = c.epoch + 1,
        start_after = new_start,
        partition_base = first_segment.partition_base,
        partition_count = first_segment.partition_count
    where c.id = sought.id;
    perform postbus_data.forget(sought.id);
    return new_start;
end
$$;

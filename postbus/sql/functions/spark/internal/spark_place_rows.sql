create or replace function postbus_data.spark_place_rows(
    stream text,
    attempt uuid,
    chunk integer,
    out stream_id integer,
    out segment integer,
    out partition_base integer,
    out partition_count integer,
    out published_at bytea,
    out first_seq bigint,
    out seqs bigint[]
)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
/*
Make this transaction a publisher of the stream, draw the seqs of a staged row's messages, and say where to COPY them in the
same transaction. Nothing else may be written to a segment by COPY.

published_at  in the format of the protocol.
seqs          null when they are consecutive from first_seq on.

Raises   PB404, PB503 when the messages are gone, or the stream was dropped and another has its name; as begin_publish.
Locks    as lock_horizon.
*/
declare
    entry postbus_data.publish_target := postbus_data.begin_publish(stream, null);
    message_count integer;
begin
    select s.message_count
    into message_count
    from postbus_data.spark_staging as s
    where s.attempt = spark_place_rows.attempt
        and s.chunk = spark_place_rows.chunk
        and s.encoded_for = entry.stream_id;
    if message_count is null then
        raise exception using
            errcode = 'PB503',
            message = 'staged messages are gone, or belong to another stream of that name',
            hint = 'nothing was published; run the batch again';
    end if;
    select d.seqs, d.layout into seqs, entry.layout from postbus_data.draw_seqs(entry, message_count) as d;
    stream_id := entry.stream_id;
    segment := postbus_data.layout_segment(entry.layout);
    partition_base := postbus_data.layout_base(entry.layout);
    partition_count := postbus_data.layout_count(entry.layout);
    published_at := timestamptz_send(clock_timestamp());
    first_seq := seqs[1];
    if seqs[message_count] - first_seq = message_count - 1 then
        seqs := null;
    end if;
end
$$;

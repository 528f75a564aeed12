create or replace function postbus.alter_stream(
    stream text,
    max_message_bytes integer default null,
    segment_bytes bigint default null,
    segment_age interval default null
)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
/*
Change settings of a stream; null leaves a setting as it is. They hold for what is published from now on.

Raises   PB400 for a value that is not allowed, PB404.
Touches  stream (update).
*/
declare
    altered integer := postbus_data.stream_id(stream);
begin
    perform postbus_data.check_limits(null, max_message_bytes, segment_bytes, segment_age);
    update postbus_data.stream as s
    set max_message_bytes = coalesce(alter_stream.max_message_bytes, s.max_message_bytes),
        segment_bytes = coalesce(alter_stream.segment_bytes, s.segment_bytes),
        segment_age = coalesce(alter_stream.segment_age, s.segment_age)
    where s.id = altered;
    perform postbus_data.write_publisher(altered);
    perform postbus_data.write_server(altered);
    perform postbus_data.write_claimer(g.stream_id, g.number, s.data_type)
    from postbus_data.segment as g
    join postbus_data.stream as s on s.id = g.stream_id
    where g.stream_id = altered;
end
$$;

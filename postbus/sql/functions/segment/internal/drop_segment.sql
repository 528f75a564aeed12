create or replace function postbus_data.drop_segment(stream_id integer, number integer)
returns void
language plpgsql
as $$
/* Drop a segment's table, its claimer and its row. Its caller has the table locked, or is dropping the stream. */
begin
    execute format('drop table %s', postbus_data.log_table(stream_id, number));
    execute format(
        'drop function if exists postbus_data.claim_%1$s_%2$s, postbus_data.scan_channels_%1$s_%2$s, postbus_data.read_channel_%1$s_%2$s,
        postbus_data.fetch_channels_%1$s_%2$s',
        stream_id, number
    );
    delete from postbus_data.segment as g
    where g.stream_id = drop_segment.stream_id
        and g.number = drop_segment.number;
end
$$;

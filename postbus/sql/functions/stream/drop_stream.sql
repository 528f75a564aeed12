create or replace function postbus.drop_stream(stream text)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Drop a stream with all its messages and consumers.

Raises   PB404 for an unknown stream, PB409 when a source publishes to it.
Touches  stream, segment, the consumers and all their rows (delete); drops the stream's tables, sequences and functions.
Locks    the stream: it waits for transactions that have published to this stream, and for its maintenance.
*/
declare
    dropped integer := postbus_data.stream_id(stream);
    segment_number integer;
    feeding text := (select min(s.name) from postbus_data.source as s where s.stream_id = dropped);
begin
    if feeding is not null then
        raise exception using
            errcode = 'PB409',
            message = format('source "%s" publishes to stream "%s"', feeding, stream),
            hint = format('remove it first, with its slot: postbus source postgres rm %s', feeding);
    end if;
    -- In the order in which publishers lock: sequences first, tables last. Maintenance must not be running.
    perform from postbus_data.stream as s where s.id = dropped for update;
    perform pg_advisory_xact_lock(postbus_data.consumer_lock_class(0), dropped);
    execute format(
        'drop function if exists postbus_data.publish_%1$s, postbus_data.publish_many_%1$s, postbus_data.ack_and_receive_%1$s, postbus_data.ack_%1$s',
        dropped
    );
    execute format('drop sequence postbus_data.seq_%s', dropped);
    execute format('drop sequence postbus_data.layout_%s', dropped);
    execute format('drop sequence postbus_data.urgent_%s', dropped);
    delete from postbus_data.level as l where l.stream_id = dropped;
    execute format('drop table if exists postbus_data.state_%s', dropped);
    perform postbus_data.end_dedup(dropped);
    perform postbus.drop_consumer(stream, c.name) from postbus_data.consumer as c where c.stream_id = dropped;
    for segment_number in
        select s.number from postbus_data.segment as s where s.stream_id = dropped order by s.number
    loop
        perform postbus_data.drop_segment(dropped, segment_number);
    end loop;
    delete from postbus_data.stream as s where s.id = dropped;
end
$$;

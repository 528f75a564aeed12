create or replace function postbus.drop_stream(stream text)
returns void
language plpgsql
as $$
/*
Remove a stream with all its messages.

Raises   PB404.
Touches  stream, segment (delete); drops the stream's tables, sequences and publisher.
Locks    waits for transactions that have published to this stream, and nobody else.
*/
declare
    dropped integer := postbus_data.stream_id(stream);
    segment_number integer;
begin
    for segment_number in
        select s.number from postbus_data.segment as s where s.stream_id = dropped order by s.number
    loop
        execute format('drop table postbus_data.log_%s_%s', dropped, segment_number);
    end loop;
    execute format('drop function if exists postbus_data.publish_%s', dropped);
    execute format('drop sequence postbus_data.seq_%s', dropped);
    execute format('drop sequence postbus_data.layout_%s', dropped);
    delete from postbus_data.stream as s where s.id = dropped;
end
$$;

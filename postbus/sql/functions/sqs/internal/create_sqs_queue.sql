create or replace function postbus_data.create_sqs_queue(name text, streams text[], attributes jsonb, tags jsonb)
returns void
language plpgsql
volatile
as $$
/*
Create a queue as CreateQueue of SQS does, with a stream and a consumer of its own. The server has checked the attributes.

streams  names for the stream: the second is for when another queue has the first. A stream that is no queue's is never taken.

Raises   PB409 when the queue exists, or a stream of that name does.
Touches  sqs_queue (insert), and as create_stream and create_consumer do.
*/
#variable_conflict use_variable
declare
    is_fifo boolean := name like '%.fifo';
    stream text := streams[1];
    reader postbus_data.consumer;
begin
    perform postbus_data.check_sqs_name(name);
    if exists (
        select
        from postbus_data.stream as s
        join postbus_data.sqs_queue as q on q.stream_id = s.id
        where s.name = stream
            and q.owns_stream
            and q.name <> name
    ) then
        stream := streams[2];
    end if;
    perform postbus.create_stream(
        stream, data_type => 'text', partitions => 1, until_acked => true, dedup_window => case when is_fifo then interval '5 minutes' end
    );
    perform postbus.create_consumer(
        stream, stream, ordering => case when is_fifo then 'key' else 'none' end, max_ack_pending => 120000, max_waiting => 20000
    );
    reader := postbus_data.find_consumer(stream, stream);
    insert into postbus_data.sqs_queue as q (name, stream_id, consumer_id, owns_stream, attributes, tags)
    values (name, reader.stream_id, reader.id, true, attributes, tags);
    perform postbus_data.apply_sqs_attributes(name);
end
$$;

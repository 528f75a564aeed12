create or replace function postbus_data.apply_sqs_attributes(name text)
returns void
language plpgsql
volatile
as $$
/*
Give the stream and the consumer of a queue the settings that its attributes mean. The stream that was there before its queue keeps its retention.

Raises   PB404 for an unknown queue, or when there is no queue for its dead letters.
Touches  stream, consumer (update).
*/
declare
    queue postbus_data.sqs_queue := postbus_data.find_sqs_queue(name);
    reader postbus_data.consumer := (select c from postbus_data.consumer as c where c.id = queue.consumer_id);
    redrive jsonb := nullif(queue.attributes ->> 'RedrivePolicy', '')::jsonb;
    target postbus_data.sqs_queue;
begin
    if queue.owns_stream then
        perform postbus.alter_stream(
            reader.stream_name, retain_up_to => make_interval(secs => coalesce(queue.attributes ->> 'MessageRetentionPeriod', '345600')::integer)
        );
    end if;
    perform postbus.alter_consumer(
        reader.stream_name, reader.name,
        ack_wait => greatest(interval '1 millisecond', make_interval(secs => coalesce(queue.attributes ->> 'VisibilityTimeout', '30')::integer))
    );
    if redrive is null then
        if queue.owns_stream then
            perform postbus.alter_consumer(reader.stream_name, reader.name, unset => array['max_deliver', 'dead_letters_to']);
        end if;
        return;
    end if;
    target := postbus_data.find_sqs_queue(split_part(redrive ->> 'deadLetterTargetArn', ':', 6));
    perform postbus.alter_consumer(
        reader.stream_name, reader.name, max_deliver => (redrive ->> 'maxReceiveCount')::integer,
        dead_letters_to => (select s.name from postbus_data.stream as s where s.id = target.stream_id)
    );
end
$$;

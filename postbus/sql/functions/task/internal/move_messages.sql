create or replace function postbus_data.move_messages(reader postbus_data.consumer, to_stream text, max_messages integer)
returns integer
language plpgsql
volatile
as $$
/*
Publish the next messages of a consumer to another stream, and ack them, in one transaction: none is lost and none is there twice. They become new messages:
headers that say where a dead letter came from are left out.

to_stream  null: each goes to the stream whose dead letter it is.

Returns  how many were moved; null if there is nothing more to move.
Raises   PB404 for an unknown stream, or a message that is no dead letter.
Touches  as receive, publish and ack do.
Locks    as receive.
*/
declare
    message postbus.delivery;
    target text;
    moved text[] := '{}';
begin
    for message in select r.* from postbus.receive(reader.stream_name, reader.name, max_messages) as r loop
        target := coalesce(to_stream, message.headers ->> 'postbus-dead-stream');
        if target is null or target = reader.stream_name then
            raise exception using
                errcode = 'PB404', message = format('message %s is no dead letter of another stream', message.seq), hint = 'name the stream that messages go to';
        end if;
        perform postbus.publish(
            target, message.key, message.data,
            nullif(
                message.headers - array[
                    'postbus-dead-stream', 'postbus-dead-consumer', 'postbus-dead-seq', 'postbus-dead-attempts', 'postbus-dead-reason',
                    'sqs-id', 'sqs-sent', 'sqs-source'
                ],
                '{}'
            ),
            message.bytes, priority => message.priority
        );
        moved := moved || message.ack_id;
    end loop;
    if moved = '{}' then
        return case when (select b.unread + b.waiting from postbus_data.count_backlog(reader.id) as b) > 0 then 0 end;
    end if;
    perform postbus.ack(reader.stream_name, reader.name, moved);
    return cardinality(moved);
end
$$;

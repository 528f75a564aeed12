create or replace function postbus_data.add_dead_letter(
    reader postbus_data.consumer,
    partition integer,
    seq bigint,
    attempts integer,
    reason text,
    token bigint default null
)
returns void
language plpgsql
volatile
as $$
/*
Make a message a dead letter, with a copy of it. A message that was purged leaves no dead letter. With dead_letters_to, another copy is
published to that stream, in the same transaction; if the stream does not take it, the reason says so. For a queue of SQS that copy is the only one.

token  see schedule_retry.

Touches  dead_letter (insert), saved (delete) of a purged message, and what postbus.publish touches.
Locks    with dead_letters_to, what postbus.publish locks.
*/
declare
    data_type text;
    message postbus.delivery;
    headers jsonb;
    as_sqs jsonb;
begin
    select s.data_type into data_type from postbus_data.stream as s where s.id = reader.stream_id;
    message := (postbus_data.fetch_named(reader.stream_id, data_type, partition, array[seq], array[attempts], 0))[1];
    if message.seq is null then
        delete from postbus_data.saved as s where s.consumer_id = reader.id and s.seq = add_dead_letter.seq;
        return;
    end if;
    if reader.dead_letters_to is not null then
        headers := coalesce(message.headers, '{}') || jsonb_strip_nulls(jsonb_build_object(
            'postbus-dead-stream', reader.stream_name, 'postbus-dead-consumer', reader.name, 'postbus-dead-seq', seq::text,
            'postbus-dead-attempts', attempts::text, 'postbus-dead-reason', left(reason, 1000)
        ));
        as_sqs := postbus_data.as_sqs_dead_letter(reader.id, message, headers);
        begin
            perform postbus.publish(
                reader.dead_letters_to, message.key, message.data, coalesce(as_sqs, headers), message.bytes,
                priority => postbus.priority_of(message.partition)
            );
            if as_sqs is not null then
                -- A queue of SQS has its dead letters in the other queue only.
                delete from postbus_data.saved as s where s.consumer_id = reader.id and s.seq = add_dead_letter.seq;
                return;
            end if;
        exception
            when sqlstate 'PB400' or sqlstate 'PB404' or sqlstate 'PB409' or sqlstate 'PB413' or sqlstate 'PB507' then
                reason := concat_ws('; ', reason, format('no copy in stream "%s": %s', reader.dead_letters_to, sqlerrm));
        end;
    end if;
    insert into postbus_data.dead_letter (
        consumer_id, seq, partition, key, data, bytes, headers, published_at, attempts, reason, token, epoch
    )
    values (
        reader.id, message.seq, message.partition, message.key, message.data, message.bytes, message.headers, message.published_at,
        attempts, reason, token, reader.epoch
    )
    on conflict on constraint dead_letter_pkey do update
    set attempts = excluded.attempts,
        reason = excluded.reason,
        died_at = excluded.died_at,
        token = excluded.token,
        epoch = excluded.epoch;
end
$$;

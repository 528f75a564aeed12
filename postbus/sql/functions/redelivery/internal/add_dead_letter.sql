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
Make a message a dead letter, with a copy of it. A message that was purged leaves no dead letter.

token  see schedule_retry.

Touches  dead_letter (insert).
*/
declare
    data_type text;
    message postbus.delivery;
begin
    select s.data_type into data_type from postbus_data.stream as s where s.id = reader.stream_id;
    message := (postbus_data.fetch_named(reader.stream_id, data_type, partition, array[seq], array[attempts], 0))[1];
    if message.seq is null then
        return;
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

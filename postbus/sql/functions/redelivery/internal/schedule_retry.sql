create or replace function postbus_data.schedule_retry(
    reader postbus_data.consumer,
    partition integer,
    seq bigint,
    key text,
    attempts integer,
    delay interval,
    reason text,
    token bigint default null
)
returns void
language plpgsql
volatile
as $$
/*
Handle a failed delivery: the message waits for its next one, or is buried if that was its last.

delay  how long it waits; null means the consumer's backoff.
token  that of its lease, if that has expired: a late ack of it counts until the message is given out again.

Touches  waiting or dead_letter (insert).
*/
begin
    if attempts >= reader.max_deliver then
        perform postbus_data.add_dead_letter(reader, partition, seq, attempts, reason, token);
        return;
    end if;
    insert into postbus_data.waiting (consumer_id, partition, seq, key, attempts, due_at, reason, token)
    values (
        reader.id, partition, seq, key, attempts,
        clock_timestamp() + coalesce(delay, postbus_data.backoff_delay(reader, attempts)),
        reason, token
    )
    on conflict on constraint waiting_pkey do nothing;
end
$$;

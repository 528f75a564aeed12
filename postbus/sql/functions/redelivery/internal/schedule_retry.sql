create or replace function postbus_data.schedule_retry(
    reader postbus_data.consumer,
    partition integer,
    seq bigint,
    key text,
    attempts integer,
    delay interval,
    reason text
)
returns void
language plpgsql
volatile
as $$
/*
Handle a failed delivery: the message waits for its next one, or is buried if that was its last.

delay    how long it waits; null means the consumer's backoff.
Touches  waiting or dead_letter (insert).
*/
begin
    if attempts >= reader.max_deliver then
        perform postbus_data.add_dead_letter(reader, partition, seq, attempts, reason);
        return;
    end if;
    insert into postbus_data.waiting (consumer_id, partition, seq, key, attempts, due_at, reason)
    values (
        reader.id, partition, seq, key, attempts,
        clock_timestamp() + coalesce(delay, postbus_data.backoff_delay(reader, attempts)),
        reason
    )
    on conflict on constraint waiting_pkey do nothing;
end
$$;

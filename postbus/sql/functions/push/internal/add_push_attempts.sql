create or replace function postbus_data.add_push_attempts(consumer_id integer, attempts jsonb)
returns void
language sql
volatile
as $$
/*
Keep attempts to send messages to an endpoint.

attempts  objects with seq or test_id, attempt, attempted_at, outcome, status, duration in seconds, error, address, answer in base64.

Touches  push_attempt (insert).
*/
    insert into postbus_data.push_attempt (
        slot, consumer_id, seq, test_id, attempt, attempted_at, outcome, status, duration, error, address, answer
    )
    select
        postbus_data.push_slot(clock_timestamp()), add_push_attempts.consumer_id, a.seq, a.test_id, a.attempt, clock_timestamp(), a.outcome,
        a.status, make_interval(secs => a.duration), left(a.error, 500), a.address, decode(a.answer, 'base64')
    from jsonb_to_recordset(attempts) as a (
        seq bigint, test_id bigint, attempt integer, outcome text, status integer, duration double precision, error text, address text,
        answer text
    )
$$;

create or replace function postbus_data.correct_history(
    consumer_id integer,
    seq bigint,
    attempt integer,
    outcome text,
    reason text
)
returns void
language sql
volatile
as $$
/*
Correct the outcome of a delivery whose lease had expired, and that was settled afterwards. Nothing happens if no history was kept.

Touches  history (update).
*/
    update postbus_data.history as h
    set outcome = correct_history.outcome,
        reason = correct_history.reason,
        finished_at = clock_timestamp()
    where h.consumer_id = correct_history.consumer_id
        and h.first_seq = correct_history.seq
        and h.attempts = array[correct_history.attempt]
        and h.reason = 'the lease expired'
$$;

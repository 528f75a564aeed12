create or replace function postbus_data.settle_expired(
    consumer_id integer,
    epoch integer,
    token bigint,
    seqs bigint[]
)
returns table (partition integer, seq bigint, attempt integer, key text)
language plpgsql
volatile
as $$
/*
Settle messages whose lease has expired and was swept, as long as nobody else has received them: they wait for redelivery, or are
dead letters, and carry the token of that lease until they are given out again.

seqs  which messages; null for all of that lease.

Returns  the messages that this call settled.
Touches  waiting, due, dead_letter (delete).
Locks    the rows; the mutex of the redelivery log, until the transaction ends, when a message is in it. A receive does not
         wait: in order "key" and "partition" it takes only what lies before such a message, and in order "none" passes over the log.

The rows are found by the token alone: with few rows, the planner rates an index on consumer_id or consumer_id + 0 as good.
*/
#variable_conflict use_column
begin
    -- In the order in which a sweep moves them, so that each is found in one or the other.
    return query
    delete from postbus_data.waiting as w
    where w.token = settle_expired.token
        and w.consumer_id - 0 = settle_expired.consumer_id
        and (settle_expired.seqs is null or w.seq = any (settle_expired.seqs))
    returning w.partition, w.seq, w.attempts, w.key;
    if exists (select from postbus_data.due as d where d.token = settle_expired.token) then
        perform pg_advisory_xact_lock(
            postbus_data.consumer_lock_class(settle_expired.consumer_id), postbus_data.consumer_lock('redeliver')
        );
        return query
        delete from postbus_data.due as d
        where d.token = settle_expired.token
            and d.consumer_id - 0 = settle_expired.consumer_id
            and d.epoch = settle_expired.epoch
            and (settle_expired.seqs is null or d.seq = any (settle_expired.seqs))
        returning d.partition, d.seq, d.attempts, null::text;
    end if;
    return query
    delete from postbus_data.dead_letter as d
    where d.token = settle_expired.token
        and d.consumer_id - 0 = settle_expired.consumer_id
        and d.epoch = settle_expired.epoch
        and (settle_expired.seqs is null or d.seq = any (settle_expired.seqs))
    returning d.partition, d.seq, d.attempts, d.key;
end
$$;

create or replace function postbus_data.record_history(held postbus_data.lease, seqs bigint[], outcome text, reason text)
returns void
language plpgsql
volatile
as $$
/*
Record the outcome of messages of a lease: one row for all that were acked, one for each that failed. A failure of a message's
last delivery is recorded as dead.

Touches  history (insert).
*/
begin
    if outcome = 'acked' then
        insert into postbus_data.history (consumer_id, partition, first_seq, seqs, attempts, received_at, outcome)
        values (
            held.consumer_id, held.partition, (select min(m.seq) from unnest(seqs) as m (seq)), seqs,
            case
                when held.attempts is not null then array(
                    select h.attempt
                    from unnest(seqs) with ordinality as m (seq, place)
                    join unnest(held.seqs, held.attempts) as h (seq, attempt) on h.seq = m.seq
                    order by m.place
                )
            end,
            held.received_at, outcome
        );
        return;
    end if;
    insert into postbus_data.history (consumer_id, partition, first_seq, seqs, attempts, received_at, outcome, reason)
    select
        held.consumer_id, held.partition, m.seq, array[m.seq], array[m.attempt], held.received_at,
        case when m.attempt >= c.max_deliver then 'dead' else record_history.outcome end,
        record_history.reason
    from (
        select h.seq, coalesce(h.attempt, 1) as attempt
        from unnest(held.seqs, held.attempts) as h (seq, attempt)
        where h.seq in (select unnest(seqs))
    ) as m
    join postbus_data.consumer as c on c.id = held.consumer_id;
end
$$;

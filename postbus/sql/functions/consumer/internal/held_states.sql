create or replace function postbus_data.held_states(consumer_id integer, epoch integer, now_at timestamptz)
returns table (partition integer, seq bigint, attempts integer, until timestamptz, reason text, state text, ack_id text, last_delivered_at timestamptz)
language sql
stable
as $$
/*
The state of each message that a consumer holds: leased, failed, parked behind its key, or due for redelivery. Postgres inlines this, so a
condition on partition and seq is an index probe in all tables but lease.
*/
    select
        l.partition, m.seq, coalesce(m.attempt, 1), l.deadline, null::text,
        case when l.deadline > now_at then 'delivered' else 'available' end,
        case when l.deadline > now_at then lpad(to_hex(l.token), 16, '0') || '-' || m.seq end,
        l.received_at
    from postbus_data.lease as l
    cross join lateral unnest(l.seqs, l.attempts) as m (seq, attempt)
    where l.consumer_id = held_states.consumer_id
        and l.epoch = held_states.epoch
        and not exists (select from postbus_data.settled as s where s.token = l.token and s.seq = m.seq)
    union all
    select
        w.partition, w.seq, w.attempts, w.due_at, w.reason, case when w.due_at > now_at then 'waiting' else 'available' end, null,
        null
    from postbus_data.waiting as w
    where w.consumer_id = held_states.consumer_id
    union all
    select p.partition, p.seq, 0, null, 'an earlier message of its key is not done', 'waiting', null, null
    from postbus_data.parked as p
    where p.consumer_id = held_states.consumer_id
        and p.epoch = held_states.epoch
    union all
    select d.partition, d.seq, d.attempts, null, null, 'available', null, null
    from postbus_data.due as d
    where d.consumer_id + 0 = held_states.consumer_id
        and d.epoch = held_states.epoch
$$;

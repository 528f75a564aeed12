create or replace function postbus_data.peek_held(
    reader postbus_data.consumer,
    after_seq bigint,
    max_messages integer,
    now_at timestamptz
)
returns setof postbus.peeked
language plpgsql
volatile
as $$
/* The messages that a consumer has leased or that wait for redelivery: the first max_messages above a seq. */
#variable_conflict use_variable
declare
    held record;
begin
    for held in
        select h.partition, array_agg(h.seq) as seqs, array_agg(h.attempt) as attempts, array_agg(h.state) as states,
            array_agg(h.until) as untils, array_agg(h.reason) as reasons, array_agg(h.ack_id) as ack_ids
        from (
            select h.*
            from (
                select
                    l.partition, m.seq, coalesce(m.attempt, 1) as attempt, l.deadline as until, null::text as reason,
                    case when l.deadline > now_at then 'delivered' else 'available' end as state,
                    case when l.deadline > now_at then lpad(to_hex(l.token), 16, '0') || '-' || m.seq end as ack_id
                from postbus_data.lease as l
                cross join lateral unnest(l.seqs, l.attempts) as m (seq, attempt)
                where l.consumer_id = reader.id
                    and l.epoch = reader.epoch
                    and not exists (select from postbus_data.settled as s where s.token = l.token and s.seq = m.seq)
                union all
                select
                    w.partition, w.seq, w.attempts, w.due_at, w.reason,
                    case when w.due_at > now_at then 'waiting' else 'available' end, null
                from postbus_data.waiting as w
                where w.consumer_id = reader.id
                union all
                select p.partition, p.seq, 0, null, 'an earlier message of its key is not done', 'waiting', null
                from postbus_data.parked as p
                where p.consumer_id = reader.id
                    and p.epoch = reader.epoch
                union all
                select d.partition, d.seq, d.attempts, null, null, 'available', null
                from postbus_data.due as d
                where d.consumer_id = reader.id
                    and d.epoch = reader.epoch
            ) as h
            where h.seq > after_seq
            order by h.seq
            limit max_messages
        ) as h
        group by h.partition
    loop
        return query
        select
            m.seq, m.partition, m.key, m.data, m.bytes, m.headers, m.published_at, h.state, h.attempt, h.until, h.reason,
            h.ack_id
        from unnest(held.seqs, held.attempts, held.states, held.untils, held.reasons, held.ack_ids)
            as h (seq, attempt, state, until, reason, ack_id)
        join unnest(
            postbus_data.fetch_named(
                reader.stream_id,
                (select s.data_type from postbus_data.stream as s where s.id = reader.stream_id),
                held.partition, held.seqs, held.attempts, 0
            )
        ) as m on m.seq = h.seq;
    end loop;
end
$$;

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
        select h.partition, array_agg(h.seq) as seqs, array_agg(h.attempts) as attempts, array_agg(h.state) as states,
            array_agg(h.until) as untils, array_agg(h.reason) as reasons, array_agg(h.ack_id) as ack_ids,
            array_agg(h.last_delivered_at) as last_delivered
        from (
            select h.*
            from postbus_data.held_states(reader.id, reader.epoch, now_at) as h
            where h.seq > after_seq
            order by h.seq
            limit max_messages
        ) as h
        group by h.partition
    loop
        return query
        select
            m.seq, m.partition, m.key, m.data, m.bytes, m.headers, m.published_at, h.state, h.attempt, h.until, h.reason,
            h.ack_id, h.last_delivered_at, coalesce(s.deferrals, 0), s.state::text, s.bytes,
            postbus.priority_of(m.partition)
        from unnest(held.seqs, held.attempts, held.states, held.untils, held.reasons, held.ack_ids, held.last_delivered)
            as h (seq, attempt, state, until, reason, ack_id, last_delivered_at)
        join unnest(
            postbus_data.fetch_named(
                reader.stream_id,
                (select s.data_type from postbus_data.stream as s where s.id = reader.stream_id),
                held.partition, held.seqs, held.attempts, 0
            )
        ) as m on m.seq = h.seq
        left join postbus_data.saved as s on s.consumer_id = reader.id and s.seq = h.seq;
    end loop;
end
$$;

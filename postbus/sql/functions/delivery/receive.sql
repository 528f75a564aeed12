create or replace function postbus.receive(
    stream text,
    consumer text,
    max_messages integer default 1,
    ack_wait interval default null,
    expected_type text default null,
    caller postbus.caller default postbus.current_caller()
)
returns setof postbus.delivery
language sql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Lease the next messages of a consumer: nobody else gets them until they are acked, nacked or the lease ends.

max_messages   1 to 10,000, in order within each partition.
ack_wait       how long they are leased; null takes the consumer's setting.
expected_type  refuse (PB409) if the stream's data type is another one; null asks nothing.

No rows mean that there was nothing: a partition that somebody else was just claiming is waited for, and what has expired or is due again
is swept up first. With a filter, that nothing of the next 65,536 messages passed; the next receive goes on behind them.

Raises   PB400, PB404, PB409, PB412 outside READ COMMITTED, PB503 on a standby.
Touches  lease, position (insert), the consumer's other tables when it sweeps.
Locks    the mutex of each partition it takes from, until the transaction ends: keep it short, or others wait for those partitions.
*/
    select
        s.lease || '-' || m.seq, coalesce(m.attempt, 1), m.seq, s.partition, m.key, m.data, m.bytes, m.headers, m.published_at
    from postbus_data.ack_and_receive_in_any_session(stream, consumer, max_messages, ack_wait, expected_type, null, false, caller) as s
    cross join lateral unnest(s.seqs, s.attempts, s.keys, s.data, s.bytes, s.headers, s.published_at)
        with ordinality as m (seq, attempt, key, data, bytes, headers, published_at, place)
$$;

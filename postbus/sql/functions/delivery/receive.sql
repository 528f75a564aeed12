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
Lease the next messages of a consumer. No other worker gets them until they are nacked or the lease expires; an ack finishes them.

max_messages   1 to 10,000, in order within each partition. All are of one priority: the highest that has some, unless the consumer has ageing.
ack_wait       how long they are leased; null means the consumer's setting.
expected_type  raise PB409 if the stream has another data type; null accepts any.

Returns  no rows when nothing is available, or when other open transactions hold all partitions that have something: it waits a tenth of
         a second for them. It first sweeps expired leases and due retries. With a filter, no rows may also mean that none of the next 65,536 messages passed; the next
         receive continues after them.
Raises   PB400 for an argument out of range, PB403 without the right to consume, PB404 for an unknown stream or consumer, PB409
         for a group or another data type, PB412 outside READ COMMITTED, PB503 on a standby.
Touches  lease, position (insert); the consumer's other tables when it sweeps.
Locks    the mutex of each partition it takes from, until the transaction ends. Keep it short: other receives skip these
         partitions.
*/
    select
        s.lease || '-' || m.seq, coalesce(abs(m.attempt), 1), m.seq, s.partition, m.key, m.data, m.bytes, m.headers, m.published_at,
        coalesce((s.saved -> (m.place - 1)::integer ->> 'deferrals')::integer, 0),
        nullif((s.saved -> (m.place - 1)::integer -> 'state')::text, 'null'),
        decode(s.saved -> (m.place - 1)::integer ->> 'bytes', 'base64'),
        postbus.priority_of(s.partition)
    from postbus_data.ack_and_receive_in_any_session(stream, consumer, max_messages, ack_wait, expected_type, null, false, caller) as s
    cross join lateral unnest(s.seqs, s.attempts, s.keys, s.data, s.bytes, s.headers, s.published_at)
        with ordinality as m (seq, attempt, key, data, bytes, headers, published_at, place)
$$;

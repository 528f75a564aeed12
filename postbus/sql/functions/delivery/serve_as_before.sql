create or replace function postbus_data.serve(
    stream text,
    consumer text,
    max_messages integer,
    ack_wait interval,
    expected_type text,
    ack_ids text[]
)
returns table (acked integer, batch postbus_data.batch)
language sql
volatile
as $$
/*
What the library of 0.1.0 calls, so that its processes go on receiving until they are replaced by new ones. A wait of 0 is how it received from a group.
*/
    select
        s.acked,
        row(s.lease, s.partition, s.seqs, s.attempts, s.keys, s.data, s.bytes, s.headers, s.published_at)::postbus_data.batch
    from postbus_data.serve(
        stream, consumer, max_messages, nullif(ack_wait, interval '0'), expected_type, ack_ids, coalesce(ack_wait = interval '0', false)
    ) as s
$$;

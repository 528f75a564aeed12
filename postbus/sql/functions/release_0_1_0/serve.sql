create or replace function postbus_data.serve(
    stream text,
    consumer text,
    max_messages integer,
    ack_wait interval,
    expected_type text,
    ack_ids text[],
    caller postbus.caller default postbus.current_caller()
)
returns table (acked integer, batch postbus_data.batch)
language sql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
ack_and_receive as the library of release 0.1.0 calls it, until its processes are replaced. With a wait of 0 it received from a
group.
*/
    select
        s.acked,
        row(
            s.lease, s.partition, s.seqs,
            case
                when s.attempts is not null then array(
                    select abs(a.attempt) from unnest(s.attempts) with ordinality as a (attempt, place) order by a.place
                )
            end,
            s.keys, s.data, s.bytes, s.headers, s.published_at
        )::postbus_data.batch
    from postbus_data.ack_and_receive(
        stream, consumer, max_messages, nullif(ack_wait, interval '0'), expected_type, ack_ids, coalesce(ack_wait = interval '0', false), caller
    ) as s
$$;

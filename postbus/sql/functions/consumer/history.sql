create or replace function postbus.history(
    stream text,
    consumer text,
    outcome text default null,
    before_time timestamptz default null,
    max_messages integer default 100,
    caller postbus.caller default postbus.current_caller()
)
returns setof postbus.history_entry
language plpgsql
volatile
security definer
set enable_seqscan = off
set enable_bitmapscan = off
set search_path = pg_catalog, pg_temp
as $$
/*
The outcomes of a consumer's deliveries, newest first: acked, failed (the message is redelivered) or dead. They are kept for the
consumer's keep_history, starting when that was set.

outcome      only deliveries with this outcome.
before_time  only deliveries finished before this time.

last_error is why the delivery failed. For an acked message, it is why the message failed before.

Raises   PB400 for an argument out of range, PB403 without the right to consume, PB404 for an unknown stream or consumer.
*/
#variable_conflict use_variable
declare
    reader postbus_data.consumer := postbus_data.permitted_consumer(caller, stream, consumer);
    data_type text := (select s.data_type from postbus_data.stream as s where s.id = reader.stream_id);
    entry postbus_data.history;
    left_count integer := max_messages;
begin
    if outcome not in ('acked', 'failed', 'dead') or (max_messages between 1 and 10000) is not true then
        raise exception using
            errcode = 'PB400',
            message = format('outcome = %L or max_messages = %s is not allowed', outcome, coalesce(max_messages::text, 'null')),
            hint = 'outcome is acked, failed or dead; max_messages is between 1 and 10000';
    end if;
    for entry in
        select h.*
        from postbus_data.history as h
        where h.consumer_id = reader.id
            and h.finished_at < coalesce(before_time, 'infinity')
            and (outcome is null or h.outcome = outcome)
        order by h.finished_at desc
        limit max_messages
    loop
        return query
        select
            s.seq, entry.partition, m.key, m.data, m.bytes, m.headers, m.published_at, entry.outcome, s.attempt, entry.received_at,
            entry.finished_at, entry.finished_at - entry.received_at,
            case
                when entry.reason is not null then entry.reason
                when s.attempt > 1 then (
                    select h.reason
                    from postbus_data.history as h
                    where h.consumer_id = reader.id
                        and h.first_seq = s.seq
                        and h.reason is not null
                        and h.finished_at < entry.finished_at
                    order by h.finished_at desc
                    limit 1
                )
            end
        from (
            select s.seq, coalesce(s.attempt, 1) as attempt
            from unnest(entry.seqs, entry.attempts) as s (seq, attempt)
            order by s.seq desc
            limit left_count
        ) as s
        left join unnest(
            postbus_data.fetch_named(
                reader.stream_id, data_type, entry.partition, entry.seqs, array_fill(1, array[cardinality(entry.seqs)]), 0
            )
        ) as m on m.seq = s.seq
        order by s.seq desc;
        left_count := left_count - cardinality(entry.seqs);
        exit when left_count <= 0;
    end loop;
end
$$;

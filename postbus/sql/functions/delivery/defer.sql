create or replace function postbus.defer(
    stream text,
    consumer text,
    ack_ids text[],
    delay interval default null,
    until timestamptz default null,
    state json default null,
    state_bytes bytea default null,
    caller postbus.caller default postbus.current_caller()
)
returns integer
language plpgsql
volatile
security definer
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
set search_path = pg_catalog, pg_temp
as $$
/*
Defer deliveries: their messages come back later, with a state that is saved with them. This does not count as an attempt; deferrals are
counted apart.

In order "key", later messages of the key wait meanwhile, and in order "partition" those of the partition.

delay        how long each message waits; null, without until, means that it is available at once.
until        when it is available, instead of a delay; a time that has passed means at once.
state        what to save with it: a JSON value. SQL null keeps what was saved before, and a JSON null removes it.
state_bytes  the same as bytes. Either is at most 65,536 bytes.

Returns  how many this call deferred; see ack for what is counted, also of leases that have expired.
Raises   PB400 for what is not an ack id, a delay of more than 365 days, a time after the year 9999, both delay and until, or both states, PB403 without the right
         to consume, PB404 for an unknown stream or consumer, PB409 for a group, PB412 outside READ COMMITTED, PB413 for a state that is too large.
Touches  settled, waiting (insert), saved (insert, update), lease (delete).
Locks    the leases, in order of their tokens.
*/
#variable_conflict use_variable
declare
    reader postbus_data.consumer := postbus_data.permitted_consumer(caller, stream, consumer);
    is_kept boolean := state is null and state_bytes is null;
    now_at timestamptz := clock_timestamp();
    due_at timestamptz;
    named record;
    message record;
    deferred integer := 0;
begin
    perform postbus_data.check_isolation();
    if reader.is_group then
        raise exception using
            errcode = 'PB409',
            message = format('"%s" of stream "%s" is a group, which gives no message back', consumer, stream),
            hint = 'a consumer can defer messages';
    end if;
    perform postbus_data.check_deferral(delay, until, state, state_bytes);
    due_at := greatest(coalesce(until, now_at + delay), now_at);
    state := case when json_typeof(state) <> 'null' then state end;
    for named in select p.token, p.seqs from postbus_data.parse_ack_ids(ack_ids) as p loop
        for message in select s.* from postbus_data.settle_messages(reader.id, reader.epoch, named.token, named.seqs, 'deferred') as s loop
            insert into postbus_data.saved as s (consumer_id, seq, deferrals, state, bytes)
            values (reader.id, message.seq, 1, state, state_bytes)
            on conflict on constraint saved_pkey do update
            set deferrals = s.deferrals + 1,
                state = case when is_kept then s.state else excluded.state end,
                bytes = case when is_kept then s.bytes else excluded.bytes end,
                saved_at = case when is_kept then s.saved_at else excluded.saved_at end;
            insert into postbus_data.waiting (consumer_id, partition, seq, key, attempts, due_at, reason)
            values (reader.id, message.partition, message.seq, message.key, message.attempt - 1, due_at, 'deferred')
            on conflict on constraint waiting_pkey do nothing;
            deferred := deferred + 1;
        end loop;
        if reader.ordering = 'key' and named.seqs is not null then
            perform postbus_data.return_later_messages_of_key(reader, named.token, named.seqs);
        end if;
    end loop;
    return deferred;
end
$$;

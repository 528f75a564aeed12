create or replace function postbus.peek(
    stream text,
    consumer text,
    state text default null,
    key_pattern text default null,
    after_seq bigint default 0,
    max_messages integer default 100,
    caller postbus.caller default postbus.current_caller()
)
returns setof postbus.peeked
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Messages as a consumer sees them, in order of seq, above after_seq. Changes nothing.

state    available (can be received), delivered (leased and not settled), waiting (for redelivery) or dead; null for all.

A lease that has expired is shown as available. The reason of an available message says whether it waits for those of a higher priority, or for its channel's turn or limits. With a key pattern, a page may hold fewer messages than there are: continue from
its last seq, or from after_seq + 10,000 when it was empty.

Raises   PB400 for an argument out of range or an invalid pattern, PB403 without the right to consume, PB404 for an unknown
         stream or consumer, PB412 outside READ COMMITTED, PB503 on a standby.
*/
#variable_conflict use_variable
declare
    reader postbus_data.consumer := postbus_data.permitted_consumer(caller, stream, consumer);
    regex text := postbus_data.pattern_regex(key_pattern);
    now_at timestamptz := clock_timestamp();
begin
    if state not in ('available', 'delivered', 'waiting', 'dead') then
        raise exception using
            errcode = 'PB400',
            message = format('state "%s" is not one of available, delivered, waiting, dead', state);
    end if;
    if max_messages is null or max_messages not between 1 and 10000 then
        raise exception using
            errcode = 'PB400',
            message = format('max_messages = %s is not between 1 and 10000', coalesce(max_messages::text, 'null'));
    end if;
    return query
    select p.*
    from (
        select h.*
        from postbus_data.peek_held(reader, after_seq, max_messages, now_at) as h
        union all
        select a.*
        from postbus_data.peek_available(reader, after_seq, max_messages) as a
        where state is null or state = 'available'
        union all
        select l.*
        from postbus_data.peek_lagging(reader, after_seq, max_messages) as l
        where reader.by_channel
            and (state is null or state = 'available')
        union all
        select
            d.seq, d.partition, d.key, d.data, d.bytes, d.headers, d.published_at, 'dead', d.attempts, null::timestamptz, d.reason,
            null::text, null::timestamptz, coalesce(s.deferrals, 0), s.state::text, s.bytes, postbus.priority_of(d.partition)
        from postbus_data.dead_letter as d
        left join postbus_data.saved as s on s.consumer_id = reader.id and s.seq = d.seq
        where d.consumer_id = reader.id
            and d.seq > after_seq
            and (state is null or state = 'dead')
    ) as p
    where (state is null or p.state = state)
        and (regex is null or p.key ~ regex)
    order by p.seq
    limit max_messages;
end
$$;

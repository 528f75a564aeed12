create or replace function postbus.peek_at(
    stream text,
    consumer text,
    seq bigint,
    caller postbus.caller default postbus.current_caller()
)
returns setof postbus.peeked
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
The message with this seq as a consumer sees it: see peek. No row if the consumer has finished it or skipped it, or if the stream has no
such message. Changes nothing.

Its cost does not depend on the depth of the stream or the backlog of the consumer: it takes one index probe for each partition and each
table, and looks through the leases in flight of the message's partition.

Raises   PB400 for a seq below 1, PB403 without the right to consume, PB404 for an unknown stream or consumer.
*/
#variable_conflict use_variable
declare
    asked postbus_data.consumer := postbus_data.permitted_consumer(caller, stream, consumer);
    message postbus.delivery := postbus_data.find_message(asked.stream_id, seq);
    is_wanted boolean := postbus_data.passes(asked, message) and postbus_data.superseded(asked.stream_id, array[message]) = '{}';
    -- A call within the query would keep Postgres from inlining held_states.
    now_at timestamptz := clock_timestamp();
    next_priority integer := postbus_data.next_priority(asked);
    -- Of its channel, if the message was passed over.
    turn postbus_data.turn;
begin
    if seq is null or seq < 1 then
        raise exception using errcode = 'PB400', message = format('seq = %s is not at least 1', coalesce(seq::text, 'null'));
    end if;
    if asked.by_channel then
        select t.*
        into turn
        from postbus_data.stream as s
        join postbus_data.turn as t on t.consumer_id = asked.id
            and t.epoch = asked.epoch
            and t.partition = message.partition
            and t.channel = postbus_data.channel_of(message.key, s.channel_tokens)
            and t.after_seq < seq
        where s.id = asked.stream_id;
    end if;
    -- One statement, so one snapshot: a message that moves from one table to another meanwhile is seen in exactly one.
    return query
    select
        d.seq, d.partition, d.key, d.data, d.bytes, d.headers, d.published_at, 'dead', d.attempts, null::timestamptz, d.reason,
        null::text, null::timestamptz, coalesce(s.deferrals, 0), s.state::text, s.bytes, postbus.priority_of(d.partition)
    from postbus_data.dead_letter as d
    left join postbus_data.saved as s on s.consumer_id = asked.id and s.seq = d.seq
    where d.consumer_id = asked.id
        and d.seq = seq
    union all
    select
        message.seq, message.partition, message.key, message.data, message.bytes, message.headers, message.published_at, h.state, h.attempts,
        h.until, h.reason, h.ack_id, h.last_delivered_at, coalesce(s.deferrals, 0), s.state::text, s.bytes, postbus.priority_of(message.partition)
    from postbus_data.held_states(asked.id, asked.epoch, now_at) as h
    left join postbus_data.saved as s on s.consumer_id = asked.id and s.seq = h.seq
    where h.partition = message.partition
        and h.seq = seq
    union all
    select
        message.seq, message.partition, message.key, message.data, message.bytes, message.headers, message.published_at, 'available', 0,
        null, coalesce(
            case when turn.n is not null then postbus_data.turn_reason(turn, now_at) end,
            case when postbus.priority_of(message.partition) < next_priority then 'messages of a higher priority go first' end
        ), null, null, 0, null, null,
        postbus.priority_of(message.partition)
    from postbus_data.stream as s
    where s.id = asked.stream_id
        and seq >= s.start_seq
        and is_wanted
        and mod(message.partition, 100000000) >= asked.partition_base
        and (turn.n is not null or seq > coalesce(
            (
                select p.read_to_seq
                from postbus_data.position as p
                where p.consumer_id = asked.id
                    and p.epoch = asked.epoch
                    and p.partition = message.partition
                order by p.read_to_seq desc
                limit 1
            ),
            asked.start_after
        ));
end
$$;

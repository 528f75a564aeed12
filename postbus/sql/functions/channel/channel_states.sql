create or replace function postbus.channel_states(
    stream text,
    consumer text,
    max_channels integer default 100,
    caller postbus.caller default postbus.current_caller()
)
returns table (
    channel text,
    partition integer,
    waiting bigint,
    in_flight bigint,
    limited_by text,
    next_at timestamptz,
    pattern text
)
language plpgsql
volatile
security definer
set enable_seqscan = off
set enable_bitmapscan = off
set search_path = pg_catalog, pg_temp
as $$
/*
Why messages wait: the channels that have messages in flight for a consumer, or that wait for their turn.

waiting      how many of its messages are ready and not in flight, as far as the consumer has read; 1,000 means that many or more.
in_flight    how many are leased.
limited_by   what holds it: concurrency, rate or paused. Null if it only waits for its turn, or for a worker.
next_at      when its rate lets it go on; null if that is not a matter of time.
pattern      whose limits it has; null for none.

Channels whose messages are all new to the consumer are not in the list: nothing holds them. For a consumer that is not by channel it is empty.

Raises   PB400 unless max_channels is between 1 and 10,000, PB403 without the right to consume, PB404 for an unknown stream or consumer.
*/
#variable_conflict use_column
declare
    reader postbus_data.consumer := postbus_data.permitted_consumer(caller, stream, consumer);
    tokens integer := (select s.channel_tokens from postbus_data.stream as s where s.id = reader.stream_id);
begin
    if (max_channels between 1 and 10000) is not true then
        raise exception using errcode = 'PB400', message = format('max_channels = %s is not between 1 and 10000', coalesce(max_channels::text, 'null'));
    end if;
    if not reader.by_channel then
        return;
    end if;
    return query
    with leased as (
        select l.partition, postbus_data.channel_of(m.key, tokens) as channel, count(*) as message_count
        from postbus_data.lease as l
        cross join lateral unnest(l.seqs, l.keys) as m (seq, key)
        where l.consumer_id = reader.id
            and l.epoch = reader.epoch
            and not exists (select from postbus_data.settled as s where s.token = l.token and s.seq = m.seq)
        group by l.partition, postbus_data.channel_of(m.key, tokens)
    ),
    turn as (
        select t.* from postbus_data.turn as t where t.consumer_id = reader.id and t.epoch = reader.epoch
    ),
    known as (
        select
            coalesce(t.channel, l.channel) as channel, coalesce(t.partition, l.partition) as partition, t.after_seq, coalesce(l.message_count, 0) as in_flight,
            t.limited_by, t.ready_at, t.n
        from turn as t
        full join leased as l on l.partition = t.partition and l.channel = t.channel
        order by t.n nulls last, 1
        limit max_channels
    )
    select
        k.channel, k.partition,
        case
            when k.n is null then 0
            else least(
                1000,
                (select c.message_count from postbus_data.count_channel(reader, k.partition, k.channel, k.after_seq, 1000) as c) + (
                    select count(*)
                    from (
                        select
                        from postbus_data.due as d
                        where d.consumer_id + 0 = reader.id
                            and d.epoch = reader.epoch
                            and d.channel = k.channel
                        limit 1000
                    ) as d
                )
            )
        end,
        k.in_flight,
        case when k.ready_at > clock_timestamp() or k.ready_at = '-infinity' then k.limited_by end,
        case when isfinite(k.ready_at) and k.ready_at > clock_timestamp() then k.ready_at end,
        (postbus_data.channel_limits(reader.stream_id, k.channel)).pattern
    from known as k
    order by k.n nulls last, k.channel;
end
$$;

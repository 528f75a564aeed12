create or replace function postbus.stats(stream text, consumer text, caller postbus.caller default postbus.current_caller())
returns table (
    partition integer,
    backlog bigint,
    backlog_is_exact boolean,
    position_seq bigint,
    horizon_seq bigint,
    lag_estimate bigint,
    oldest_unread_at timestamptz,
    in_flight bigint,
    waiting bigint,
    dead bigint,
    oldest_in_flight_at timestamptz,
    expired bigint,
    missed_estimate bigint,
    rate_estimate double precision,
    by_priority jsonb
)
language plpgsql
volatile
security definer
set enable_seqscan = off
set enable_bitmapscan = off
set search_path = pg_catalog, pg_temp
as $$
/*
How far a consumer has come: one row for each partition that it reads, and one with partition null for the whole consumer. The
cost does not depend on the length of the stream.

backlog              how many messages the consumer has not finished: not delivered yet, in flight, waiting for redelivery, or parked behind
                     their key. Dead letters and scheduled messages do not count. Null for a partition.
backlog_is_exact     they were counted. Otherwise it is an estimate: above 1,000 messages that are not delivered yet, and for a filter by
                     data. 0 is always exact.
position_seq         the partition was delivered up to this seq.
lag_estimate         about how many messages are not delivered yet; for the whole consumer, as exact as the backlog. For a partition it
                     assumes that messages are spread evenly over the partitions, and passes over the filter.
oldest_unread_at     when the oldest message that is not delivered yet was published.
in_flight            how many messages are leased and not settled.
waiting, dead        how many messages have failed or are parked, and how many were given up; 10,000 means that many or more.
oldest_in_flight_at  when the oldest lease was given.
expired              how many messages were skipped or buried because their time to live was over, since the last seek.
by_priority          how many messages are not delivered yet or waiting, by each priority in use, as exact as these. Null for a partition.
rate_estimate        about how many messages per second were delivered in the last seconds; null for a group.
missed_estimate      about how many messages retention or a purge removed before the consumer reached them. Seqs without a
                     message do not count; postbus_data.missed_between says what is exact and what is estimated.

Raises   PB403 without the right to consume, PB404 for an unknown stream or consumer, PB412 outside READ COMMITTED, PB503 on a
         standby.
*/
#variable_conflict use_column
declare
    reader postbus_data.consumer := postbus_data.permitted_consumer(caller, stream, consumer);
    layout bigint := postbus_data.reading_layout(reader);
    partition_count integer := postbus_data.layout_count(layout);
    end_seq bigint;
    total_expired bigint := 0;
    total_missed bigint := 0;
    start_seq bigint;
    next_message postbus.delivery;
    swept postbus_data.sweep_state;
begin
    horizon_seq := postbus_data.horizon_of(reader.stream_id);
    select s.start_seq into start_seq from postbus_data.stream as s where s.id = reader.stream_id;
    -- The first seq of the next layout, after a change of the partition count.
    end_seq := least(
        horizon_seq,
        (
            select min(g.after_seq)
            from postbus_data.segment as g
            where g.stream_id = reader.stream_id
                and g.partition_base > reader.partition_base
                and g.number <= postbus_data.layout_segment(layout)
        )
    );
    for partition in select p from postbus_data.segment_partitions(reader.stream_id, postbus_data.layout_base(layout), partition_count) as p order by p loop
        position_seq := null;
        select p.read_to_seq, p.expired_count, p.missed_count into position_seq, expired, missed_estimate
        from postbus_data.position as p
        where p.consumer_id = reader.id
            and p.epoch = reader.epoch
            and p.partition = stats.partition
        order by p.read_to_seq desc
        limit 1;
        position_seq := coalesce(position_seq, reader.start_after);
        missed_estimate := coalesce(missed_estimate, 0) + case
            when start_seq - 1 > position_seq
            then postbus_data.missed_between(reader.stream_id, partition, position_seq, start_seq, partition_count)
            else 0
        end;
        total_missed := total_missed + missed_estimate;
        position_seq := greatest(position_seq, start_seq - 1);
        next_message := (
            postbus_data.fetch_messages(reader.stream_id, partition, position_seq, horizon_seq, 1)
        )[1];
        oldest_unread_at := next_message.published_at;
        lag_estimate := case
            when next_message.seq is null then 0
            else greatest(1, (end_seq - next_message.seq + 1) / partition_count)
        end;
        in_flight := postbus_data.in_flight(reader.id, reader.epoch, partition, null);
        expired := coalesce(expired, 0);
        total_expired := total_expired + expired;
        return next;
    end loop;

    partition := null;
    position_seq := null;
    expired := total_expired;
    missed_estimate := total_missed;
    select b.backlog, b.is_exact, b.unread, b.in_flight, b.waiting, b.dead, b.oldest_unread_at, b.oldest_in_flight_at, b.by_priority
    into backlog, backlog_is_exact, lag_estimate, in_flight, waiting, dead, oldest_unread_at, oldest_in_flight_at, by_priority
    from postbus_data.count_backlog(reader.id) as b;
    if not reader.is_group then
        swept := postbus_data.sweep_state_of(reader);
        -- Just after a sweep there is too little time to divide by; the sweep has recorded the rate before it.
        rate_estimate := case
            when swept.swept_to > clock_timestamp() - interval '1 second' then swept.delivery_rate
            else postbus_data.delivery_rate(swept, postbus_data.position_sum(reader), clock_timestamp())
        end;
    end if;
    return next;
end
$$;

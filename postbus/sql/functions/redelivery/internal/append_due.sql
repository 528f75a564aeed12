create or replace function postbus_data.append_due(reader postbus_data.consumer, from_time timestamptz, to_time timestamptz)
returns integer
language plpgsql
volatile
as $$
/*
Move messages that are due to the redelivery log of their level, those that came due since the last sweep in order of their seqs.

Its caller holds the sweep mutex until it commits, so rows become visible in the order of their numbers.

Returns  how many were moved.
Touches  waiting (delete), due (insert).
*/
#variable_conflict use_variable
declare
    lanes integer[] := postbus_data.lanes(reader.stream_id);
    -- The last number in each of them.
    last_ns bigint[];
    last_n bigint;
    lane integer;
    moved integer;
begin
    -- Whatever the caller knew of the consumer when it began.
    if (select c.by_channel from postbus_data.consumer as c where c.id = reader.id) then
        return postbus_data.append_channel_due(reader, from_time, to_time);
    end if;
    foreach lane in array lanes loop
        select d.n into last_n
        from postbus_data.due as d
        where d.consumer_id = reader.id
            and d.epoch = reader.epoch
            and d.lane = lane
        order by d.n desc
        limit 1;
        last_ns := last_ns || greatest(last_n, (postbus_data.redelivery_position_of(reader, lane)).read_to_n);
    end loop;

    with ripe as materialized (
        select w.consumer_id, w.partition, w.seq, w.due_at
        from postbus_data.waiting as w
        where w.consumer_id + 0 = reader.id
            and w.due_at > from_time
            and w.due_at <= to_time
        order by w.due_at
        limit 10000
        for update skip locked
    ),
    taken as (
        delete from postbus_data.waiting as w
        using ripe as r
        where w.consumer_id = r.consumer_id
            and w.partition = r.partition
            and w.seq = r.seq
        returning w.partition, w.seq, w.attempts, w.due_at, w.token
    )
    insert into postbus_data.due (consumer_id, epoch, n, partition, seq, attempts, token, lane)
    select
        reader.id, reader.epoch,
        last_ns[array_position(lanes, t.partition / 100000000 * 100000000)] + row_number() over (partition by t.partition / 100000000 order by t.seq),
        t.partition, t.seq, t.attempts, t.token, t.partition / 100000000 * 100000000
    from taken as t;
    get diagnostics moved = row_count;
    return moved;
end
$$;

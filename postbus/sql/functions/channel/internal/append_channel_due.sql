create or replace function postbus_data.append_channel_due(reader postbus_data.consumer, from_time timestamptz, to_time timestamptz)
returns integer
language plpgsql
volatile
as $$
/*
What append_due does, for a consumer by channel: each partition has a redelivery log of its own, and a message stays in it until its channel's turn.

Its caller holds the sweep mutex until it commits, so rows become visible in the order of their numbers.

Returns  how many were moved.
Touches  waiting (delete), due (insert).
*/
#variable_conflict use_variable
declare
    moved integer;
begin
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
        returning w.partition, w.seq, w.attempts, w.token, w.key
    ),
    log as materialized (
        select p.partition, greatest(r.read_to_n, last.n) as last_n
        from (select distinct t.partition from taken as t) as p
        cross join lateral postbus_data.redelivery_position_of(reader, postbus_data.channel_lane(p.partition)) as r
        left join lateral (
            select d.n
            from postbus_data.due as d
            where d.consumer_id = reader.id
                and d.epoch = reader.epoch
                and d.lane = postbus_data.channel_lane(p.partition)
            order by d.n desc
            limit 1
        ) as last on true
    )
    insert into postbus_data.due (consumer_id, epoch, n, partition, seq, attempts, token, lane, channel)
    select
        reader.id, reader.epoch, l.last_n + row_number() over (partition by t.partition order by t.seq), t.partition, t.seq, t.attempts, t.token,
        postbus_data.channel_lane(t.partition), postbus_data.channel_of(t.key, s.channel_tokens)
    from taken as t
    join log as l on l.partition = t.partition
    join postbus_data.stream as s on s.id = reader.stream_id;
    get diagnostics moved = row_count;
    return moved;
end
$$;

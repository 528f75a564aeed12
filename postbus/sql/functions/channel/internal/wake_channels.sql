create or replace function postbus_data.wake_channels(reader postbus_data.consumer, claim postbus_data.channel_claim)
returns postbus_data.channel_claim
language plpgsql
volatile
as $$
/*
Give a turn to the channels that a limit held and that may go on: some of their messages in flight are finished, or their time has come. So do channels
with retries that have come due, unless they have a turn already.

Its caller holds the partition's mutex, has read what is in flight under it, and writes the position.
Touches  turn (delete, insert), redelivery_position (insert; delete of the last one).
*/
#variable_conflict use_variable
declare
    place postbus_data.position := claim.place;
    lane integer := postbus_data.channel_lane(place.partition);
    retries postbus_data.redelivery_position := postbus_data.redelivery_position_of(reader, lane);
    last_n bigint;
    woken bigint;
    rested_to timestamptz;
begin
    with free as materialized (
        select t.channel, t.n, t.after_seq, t.ready_at
        from postbus_data.turn as t
        where t.consumer_id + 0 = reader.id
            and t.epoch = reader.epoch
            and t.partition = place.partition
            and t.ready_at = '-infinity'
            and cardinality(array_positions(claim.in_flight, t.channel)) < t.max_concurrency
    ),
    ripe as materialized (
        select t.channel, t.n, t.after_seq, t.ready_at
        from postbus_data.turn as t
        where t.consumer_id + 0 = reader.id
            and t.epoch = reader.epoch
            and t.partition = place.partition
            and t.ready_at > place.rested_to
            and t.ready_at <= claim.now_at
        order by t.ready_at
        limit 256
    ),
    rested as (
        select f.* from free as f union all select r.* from ripe as r
    ),
    gone as (
        delete from postbus_data.turn as t
        using rested as r
        where t.consumer_id = reader.id
            and t.epoch = reader.epoch
            and t.partition = place.partition
            and t.channel = r.channel
            and t.n = r.n
        returning t.channel
    ),
    again as (
        insert into postbus_data.turn (consumer_id, epoch, partition, channel, n, after_seq)
        select reader.id, reader.epoch, place.partition, r.channel, place.last_turn + row_number() over (order by r.n), r.after_seq
        from rested as r
        returning n
    )
    select (select max(a.n) from again as a), (select max(r.ready_at) from ripe as r) into woken, rested_to;
    place.last_turn := coalesce(woken, place.last_turn);
    -- Those at the same time as the last one are taken too, or they would be passed over; times have microseconds, and the limit is generous.
    place.rested_to := greatest(place.rested_to, rested_to - interval '1 microsecond');

    select max(d.n) into last_n
    from (
        select d.n
        from postbus_data.due as d
        where d.consumer_id = reader.id
            and d.epoch = reader.epoch
            and d.lane = lane
            and d.n > retries.read_to_n
        order by d.n
        limit 256
    ) as d;
    if last_n is not null then
        insert into postbus_data.turn (consumer_id, epoch, partition, channel, n, after_seq)
        select reader.id, reader.epoch, place.partition, c.channel, place.last_turn + row_number() over (order by c.n), place.read_to_seq
        from (
            select d.channel, min(d.n) as n
            from postbus_data.due as d
            where d.consumer_id = reader.id
                and d.epoch = reader.epoch
                and d.lane = lane
                and d.n > retries.read_to_n
                and d.n <= last_n
            group by d.channel
        ) as c
        where not exists (
            select
            from postbus_data.turn as t
            where t.consumer_id = reader.id
                and t.epoch = reader.epoch
                and t.partition = place.partition
                and t.channel = c.channel
        );
        get diagnostics woken = row_count;
        place.last_turn := place.last_turn + woken;
        delete from postbus_data.redelivery_position as p
        where p.consumer_id = reader.id
            and p.epoch = reader.epoch
            and p.lane = lane
            and p.read_to_n = retries.read_to_n;
        insert into postbus_data.redelivery_position (consumer_id, epoch, read_to_n, pending_bound, lane)
        values (reader.id, reader.epoch, last_n, 0, lane);
    end if;
    claim.is_changed := claim.is_changed or place.last_turn > (claim.place).last_turn or last_n is not null;
    claim.place := place;
    return claim;
end
$$;

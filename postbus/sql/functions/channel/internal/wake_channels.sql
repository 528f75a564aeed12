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
    last_turn bigint := (claim.state).last_turn;
    added bigint;
    resting postbus_data.turn;
    rested_to timestamptz;
begin
    -- One by one: a join of those that rest with the table might be planned as a walk through all of it.
    for resting in
        select t.*
        from postbus_data.turn as t
        where t.consumer_id + 0 = reader.id
            and t.epoch = reader.epoch
            and t.partition = place.partition
            and t.ready_at = '-infinity'
            and cardinality(array_positions(claim.in_flight, t.channel)) < t.max_concurrency
        order by t.n
    loop
        claim.state := postbus_data.give_turn(claim.state, resting);
    end loop;
    for resting in
        select t.*
        from postbus_data.turn as t
        where t.consumer_id + 0 = reader.id
            and t.epoch = reader.epoch
            and t.partition = place.partition
            and t.ready_at > (claim.state).rested_to
            and t.ready_at <= claim.now_at
        order by t.ready_at
        limit 256
    loop
        -- Others may rest until the same moment.
        rested_to := resting.ready_at - interval '1 microsecond';
        claim.state := postbus_data.give_turn(claim.state, resting);
    end loop;
    claim.state.rested_to := greatest((claim.state).rested_to, rested_to);

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
        select reader.id, reader.epoch, place.partition, c.channel, (claim.state).last_turn + row_number() over (order by c.n), place.read_to_seq
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
        where (
            select t.n
            from postbus_data.turn as t
            where t.consumer_id = reader.id
                and t.epoch = reader.epoch
                and t.partition = place.partition
                and t.channel = c.channel
            order by t.n desc
            limit 1
        ) is null;
        get diagnostics added = row_count;
        claim.state.last_turn := (claim.state).last_turn + added;
        delete from postbus_data.redelivery_position as p
        where p.consumer_id = reader.id
            and p.epoch = reader.epoch
            and p.lane = lane
            and p.read_to_n = retries.read_to_n;
        insert into postbus_data.redelivery_position (consumer_id, epoch, read_to_n, pending_bound, lane)
        values (reader.id, reader.epoch, last_n, 0, lane);
    end if;
    claim.is_changed := claim.is_changed or (claim.state).last_turn > last_turn or last_n is not null;
    return claim;
end
$$;

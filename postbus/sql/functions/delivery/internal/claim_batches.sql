create or replace function postbus_data.claim_batches(
    reader postbus_data.consumer,
    max_messages integer,
    ack_wait interval,
    expected_type text,
    begin_with integer
)
returns setof postbus_data.batch
language plpgsql
volatile
as $$
/*
Lease the next messages of a consumer, as postbus.receive does, and return a row for each lease.

begin_with  the partition to look at first; null for a random one, so that none starves.

Of a stream with levels, it takes messages of one level: the highest that has some.
*/
#variable_conflict use_variable
declare
    claim postbus_data.receive_state;
    partition_base integer;
    partition_count integer;
    first integer;
    step_count integer;
    partition integer;
    remaining integer := max_messages;
    wait_until timestamptz := clock_timestamp() + interval '100 milliseconds';
    scan_left integer := 65536;
    batch postbus_data.batch;
    found_count integer;
    last_claim postbus_data.receive_state;
    busy_due boolean;
    -- The partitions that other sessions hold. In later rounds, only these are looked at; null means all.
    busy_ones integer[];
    awaited integer[];
    -- The levels in use, as lanes, and how far this receive has come. See lane_of.
    lanes integer[] := '{0}';
    place integer;
    lane integer;
    -- With levels: the partitions of the level that may have something. Null means all.
    unread integer[];
    busy_level boolean;
    capacity integer;
    urgent_count bigint;
    urgent_is_taken boolean;
    last_seq bigint;
begin
    if reader.by_channel then
        return query select b.* from postbus_data.claim_channels(reader, max_messages, ack_wait, expected_type, begin_with) as b;
        return;
    end if;
    claim := postbus_data.begin_claim(reader, max_messages, ack_wait, expected_type);
    if reader.expire_after is not null then
        perform postbus_data.note_use(reader);
    end if;
    if reader.paused then
        return;
    end if;
    if claim.quota is null then
        remaining := postbus_data.free_capacity(reader, max_messages);
    end if;
    -- A busy consumer is asked many times a second: most need not even look whether it was swept.
    if random() < 0.1 and postbus_data.sweep_now_and_then(reader) then
        claim.has_due := true;
    end if;

    while remaining > 0 loop
        busy_due := false;
        busy_ones := '{}';
        partition_base := postbus_data.layout_base(claim.layout);
        partition_count := postbus_data.layout_count(claim.layout);
        first := case
            when begin_with - partition_base between 0 and partition_count - 1 then begin_with - partition_base
            else floor(random() * partition_count)
        end;
        -- In order "key" idle partitions come first: there, nothing has to be parked.
        step_count := case when reader.ordering = 'key' then 2 else 1 end * partition_count;
        if postbus_data.has_levels(claim.layout) then
            -- In this order: see note_levels.
            urgent_count := pg_sequence_last_value(to_regclass('postbus_data.urgent_' || reader.stream_id));
            last_seq := pg_sequence_last_value(to_regclass('postbus_data.seq_' || reader.stream_id));
            claim.horizon := postbus_data.horizon_of(reader.stream_id);
            lanes := postbus_data.lanes_in_turn(reader, claim.horizon);
            urgent_is_taken := urgent_count <= coalesce(
                (
                    select u.read_to_count
                    from postbus_data.urgent_position as u
                    where u.consumer_id = reader.id
                        and u.epoch = reader.epoch
                    order by u.read_to_count desc
                    limit 1
                ),
                0
            );
        end if;
        place := 1;
        capacity := remaining;
        -- One level at a time, so that what a worker gets is all of one level.
        while place <= cardinality(lanes) and remaining = capacity and scan_left > 0 loop
            lane := lanes[place];
            busy_level := false;
            if postbus_data.has_levels(claim.layout) then
                if lane = 0 and not urgent_is_taken and reader.ageing is null then
                    perform postbus_data.note_urgent_read(reader, urgent_count, last_seq, claim.horizon);
                end if;
                unread := case
                    when lane >= 500000000
                        and urgent_is_taken
                        and not exists (
                            select
                            from postbus_data.waiting as w
                            where w.consumer_id = reader.id
                                and w.partition between lane and lane + 99999999
                        )
                    then '{}'
                    else array(select w.partition from postbus_data.lane_work(reader, lane, claim.horizon) as w)
                end;
                claim.has_due := postbus_data.has_due(reader.id, reader.epoch, lane);
            end if;
            if claim.has_due then
                claim := postbus_data.claim_due(reader, claim, remaining, lane);
                busy_due := claim.busy and postbus_data.has_due(reader.id, reader.epoch, lane);
                if claim.messages is not null then
                    return query select b.* from postbus_data.as_batches(claim.messages) as b;
                    remaining := remaining - cardinality(claim.messages);
                end if;
            end if;
            for step in 0 .. step_count - 1 loop
                exit when remaining <= 0 or (step = partition_count and remaining < max_messages);
                partition := lane + partition_base + mod(first + step, partition_count);
                continue when not partition = any (awaited) or not partition = any (unread);
                continue when step_count > partition_count and step < partition_count and not postbus_data.is_idle(reader, partition);
                last_claim := null;
                loop
                    claim := postbus_data.claim_partition(reader, claim, partition, remaining);
                    if claim.busy then
                        busy_ones := busy_ones || partition;
                        busy_level := true;
                    end if;
                    if claim.messages is not null then
                        return query select b.* from postbus_data.as_batches(claim.messages) as b;
                        remaining := remaining - cardinality(claim.messages);
                    end if;
                    -- Also if the last look changed nothing: the limit of parked messages is reached.
                    exit when claim.wanted is null
                        or (claim.after_seq = last_claim.after_seq and (claim.place).horizon = (last_claim.place).horizon);
                    execute 'select b.* from postbus_data.claim_' || reader.stream_id || '_' || claim.segment || '($1, $2) as b'
                    into batch
                    using reader, claim;
                    found_count := coalesce(cardinality(batch.seqs), 0);
                    if found_count > 0 then
                        return next batch;
                        remaining := remaining - found_count;
                    end if;
                    exit when found_count = claim.wanted;
                    last_claim := claim;
                    if claim.scan is not null then
                        -- It has moved on as far as it has looked, which costs a little also where there was nothing; look at more at a time.
                        scan_left := scan_left - coalesce(batch.attempts[1], claim.scan) - 16;
                        exit when scan_left <= 0;
                        claim.scan := least(4 * claim.scan, 16384);
                    elsif claim.blocked is not null then
                        -- The position is now after the parked messages; there may be free keys further on.
                        null;
                    elsif batch.partition is null then
                        -- All that it looked at had expired, and it has moved on behind it.
                        scan_left := scan_left - batch.attempts[1];
                        exit when scan_left <= 0;
                    elsif claim.to_seq < (claim.place).horizon then
                        -- The segment is read to its end.
                        if found_count = 0 then
                            perform postbus_data.advance_position(claim.place, claim.to_seq);
                        end if;
                    else
                        -- All is read up to the horizon; if an earlier claim saw it, look where it is now.
                        if claim.horizon is not null then
                            if found_count = 0 and (
                                (claim.place).read_to_seq = reader.start_after
                                or (claim.place).horizon - (claim.place).read_to_seq >= remaining * partition_count
                            ) then
                                -- So that it does not look new, or full, the next time.
                                perform postbus_data.advance_position(claim.place, (claim.place).horizon);
                            end if;
                            exit;
                        end if;
                        claim.horizon := postbus_data.horizon_of(reader.stream_id);
                    end if;
                end loop;
            end loop;
            busy_level := busy_level or busy_due;
            if busy_level and place < cardinality(lanes) and remaining = capacity and clock_timestamp() < wait_until then
                -- Another session looks at messages of this level: they do not wait behind lower ones.
                busy_ones := '{}';
                perform pg_sleep(0.001);
            else
                place := place + 1;
            end if;
        end loop;
        exit when remaining < max_messages or scan_left <= 0;

        -- Nothing found. Before saying so, check the partitions that others hold, and sweep what has expired.
        if busy_ones <> '{}' and not postbus_data.is_behind(reader) then
            claim.horizon := postbus_data.horizon_of(reader.stream_id);
            busy_ones := array(
                select p from unnest(busy_ones) as p where postbus_data.has_more(reader, p, claim.start_seq, claim.horizon)
            );
        end if;
        if busy_due or busy_ones <> '{}' then
            -- Only one session waits for all old partitions when it is time to move to the new ones.
            exit when clock_timestamp() > wait_until
                or (postbus_data.is_behind(reader) and not pg_try_advisory_xact_lock(postbus_data.consumer_lock_class(reader.id), postbus_data.consumer_lock('change layout')));
            awaited := busy_ones;
            perform pg_sleep(0.0005);
        else
            awaited := null;
            if postbus_data.is_behind(reader) then
                reader := postbus_data.change_layout(reader);
            end if;
            if claim.layout <> postbus_data.reading_layout(reader) then
                claim := postbus_data.begin_claim(reader, max_messages, ack_wait, expected_type);
                if claim.quota is null then
                    remaining := postbus_data.free_capacity(reader, max_messages);
                end if;
            elsif postbus_data.sweep_consumer(reader) = 0 then
                exit;
            end if;
        end if;
        claim.has_due := true;
        claim.horizon := null;
    end loop;
end
$$;

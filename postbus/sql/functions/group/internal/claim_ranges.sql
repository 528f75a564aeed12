create or replace function postbus_data.claim_ranges(
    reader postbus_data.consumer,
    max_messages integer,
    lease interval,
    worker text,
    begin_with integer
)
returns setof postbus.claimed
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
/*
Claim the next messages of a group, as postbus.claim does.

begin_with  the partition to look at first; null for a random one, so that none starves.
*/
#variable_conflict use_variable
declare
    partition_base integer := reader.partition_base;
    partition_count integer := reader.partition_count;
    -- Levels are partitions like others: a worker that reads a partition reads it in all levels, in turn.
    lanes integer[] := case
        when postbus_data.has_levels(pg_sequence_last_value(to_regclass('postbus_data.layout_' || reader.stream_id))) then postbus_data.lanes(reader.stream_id)
        else '{0}'
    end;
    first_lane integer := floor(random() * cardinality(lanes));
    start_seq bigint := (select s.start_seq from postbus_data.stream as s where s.id = reader.stream_id);
    first integer := case
        when begin_with - partition_base between 0 and partition_count - 1 then begin_with - partition_base
        else floor(random() * partition_count)
    end;
    partition integer;
    remaining integer := max_messages;
    claimed postbus.claimed;
    owned integer[];
    -- The partitions that other sessions hold. In later rounds, only these are looked at; null means all.
    busy_ones integer[];
    awaited integer[];
    horizon bigint;
    wait_until timestamptz := clock_timestamp() + interval '100 milliseconds';
begin
    perform postbus_data.check_isolation();
    if (max_messages between 1 and 10000) is not true or (lease between interval '1 millisecond' and interval '7 days') is false then
        raise exception using
            errcode = 'PB400',
            message = format('max_messages = %s or lease = %s is not allowed', coalesce(max_messages::text, 'null'), lease),
            hint = 'max_messages is between 1 and 10000, a lease between 1 millisecond and 7 days';
    end if;
    if reader.expire_after is not null then
        perform postbus_data.note_use(reader);
    end if;
    if worker is not null then
        owned := postbus_data.owned_partitions(reader.id, worker);
    end if;
    if reader.paused then
        return;
    end if;
    loop
        busy_ones := '{}';
        for step in 0 .. partition_count * cardinality(lanes) - 1 loop
            exit when remaining <= 0;
            partition := lanes[1 + mod(first_lane + step / partition_count, cardinality(lanes))] + partition_base + mod(first + step, partition_count);
            continue when not mod(partition, 100000000) = any (owned) or not partition = any (awaited);
            if not pg_try_advisory_xact_lock(postbus_data.consumer_lock_class(reader.id), partition) then
                busy_ones := busy_ones || partition;
                continue;
            end if;
            claimed := postbus_data.claim_range(reader, partition, start_seq, partition_count, remaining, lease);
            if claimed.message_count > 0 then
                remaining := remaining - claimed.message_count;
                return next claimed;
            end if;
        end loop;
        exit when remaining < max_messages;
        if busy_ones <> '{}' and not postbus_data.is_behind(reader) then
            horizon := postbus_data.horizon_of(reader.stream_id);
            busy_ones := array(select p from unnest(busy_ones) as p where postbus_data.has_more(reader, p, start_seq, horizon));
        end if;
        if busy_ones <> '{}' then
            exit when clock_timestamp() > wait_until
                or (postbus_data.is_behind(reader) and not pg_try_advisory_xact_lock(postbus_data.consumer_lock_class(reader.id), postbus_data.consumer_lock('change layout')));
            awaited := busy_ones;
            perform pg_sleep(0.0005);
        else
            awaited := null;
            exit when not postbus_data.is_behind(reader);
            reader := postbus_data.change_layout(reader);
            exit when partition_base = reader.partition_base;
            partition_base := reader.partition_base;
            partition_count := reader.partition_count;
            first := floor(random() * partition_count);
        end if;
    end loop;
end
$$;

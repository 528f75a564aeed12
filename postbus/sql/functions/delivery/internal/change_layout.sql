create or replace function postbus_data.change_layout(reader postbus_data.consumer)
returns postbus_data.consumer
language plpgsql
volatile
as $$
/*
Move a consumer to the next partitions of its stream, if their number was changed and it has read the current ones to their end.
So a key is never read in two partitions at once.

Messages that are in flight, failed or parked stay where they are, and hold their keys in the new partitions too: see
claim_by_key. In order "partition", and in a group, there may be none left.

Returns  the consumer; unchanged if it cannot move yet.
Touches  consumer (update), position (insert, delete), parked (delete), waiting (insert).
Locks    the mutexes of the old partitions, until the transaction ends. It does not move if another session holds one.
*/
#variable_conflict use_variable
declare
    next_segment postbus_data.segment;
    start_seq bigint := (select s.start_seq from postbus_data.stream as s where s.id = reader.stream_id);
    oldest_publisher bigint;
    end_seq bigint;
    place postbus_data.position;
    places postbus_data.position[];
    partition integer;
    leases bigint[];
    moved postbus_data.consumer;
begin
    select g.* into next_segment
    from postbus_data.segment as g
    where g.stream_id = reader.stream_id
        and g.partition_base > reader.partition_base
        and g.number <= postbus_data.layout_segment(postbus_data.reading_layout(reader))
    order by g.number
    limit 1;
    if next_segment.number is null then
        return reader;
    end if;
    -- As in seal_segments, which may come later than this: nobody can write to the old partitions any more.
    select min(l.held_at) into oldest_publisher
    from postbus_data.publisher_locks(
        reader.stream_id, pg_sequence_last_value(to_regclass('postbus_data.seq_' || reader.stream_id))
    ) as l;
    if exists (
        select
        from postbus_data.segment as g
        where g.stream_id = reader.stream_id
            and g.number < next_segment.number
            and g.sealed_at is null
            and (g.rolled_at_seq is null or g.rolled_at_seq >= oldest_publisher)
    ) then
        return reader;
    end if;
    end_seq := postbus_data.horizon_of(reader.stream_id);
    for partition in select p from postbus_data.segment_partitions(reader.stream_id, reader.partition_base, reader.partition_count) as p order by p loop
        -- Levels share the mutex of the partition, but for a group.
        if not pg_try_advisory_xact_lock(postbus_data.consumer_lock_class(reader.id), mod(partition, 100000000))
            or (reader.is_group and not pg_try_advisory_xact_lock(postbus_data.consumer_lock_class(reader.id), partition))
        then
            return reader;
        end if;
        place := postbus_data.position_of(reader, partition);
        if postbus_data.next_seqs(reader.stream_id, partition, greatest(place.read_to_seq, start_seq - 1), end_seq, 1) is not null then
            return reader;
        end if;
        if reader.ordering = 'partition' and (
            exists (select from postbus_data.lease as l where l.token = any (place.leases))
            or exists (select from postbus_data.waiting as w where w.consumer_id = reader.id and w.partition = partition)
        ) then
            return reader;
        end if;
        place.missed_count := place.missed_count + case
            when start_seq - 1 > place.read_to_seq
            then postbus_data.missed_between(
                reader.stream_id, partition, place.read_to_seq, least(start_seq, next_segment.after_seq + 1), reader.partition_count
            )
            else 0
        end;
        places := places || place;
    end loop;

    update postbus_data.consumer as c
    set partition_base = next_segment.partition_base,
        partition_count = next_segment.partition_count
    where c.id = reader.id
        and c.epoch = reader.epoch
        and c.partition_base = reader.partition_base
    returning c.* into moved;
    if moved.id is null then
        -- Another session was faster.
        select c.* into moved from postbus_data.consumer as c where c.id = reader.id and c.epoch = reader.epoch;
        return case when moved.id is null then reader else moved end;
    end if;
    foreach place in array places loop
        -- A receive that still looks at an old partition finds nothing to claim.
        perform postbus_data.write_position(place, 9223372036854775807);
    end loop;
    with unparked as (
        delete from postbus_data.parked as p
        where p.consumer_id = reader.id
            and p.epoch = reader.epoch
        returning p.*
    )
    insert into postbus_data.waiting (consumer_id, partition, seq, key, attempts, due_at, reason)
    select u.consumer_id, u.partition, u.seq, u.key, 0, clock_timestamp(), 'an earlier message of its key is not done'
    from unparked as u
    on conflict on constraint waiting_pkey do nothing;
    if reader.ordering = 'key' then
        select array_agg(distinct l.token) into leases
        from postbus_data.lease as l
        where l.consumer_id = reader.id
            and l.epoch = reader.epoch;
    end if;
    insert into postbus_data.position (consumer_id, epoch, partition, read_to_seq, horizon, pending_bound, leases, expired_count, missed_count)
    select
        reader.id, reader.epoch, p.n, greatest(next_segment.after_seq, reader.start_after), 0,
        case when p.n < 100000000 then postbus_data.in_flight(reader.id, reader.epoch, null, case when reader.ordering = 'none' then false end) else 0 end,
        case when p.n < 100000000 then leases end,
        case when p.n = moved.partition_base then (select sum(o.expired_count) from unnest(places) as o) else 0 end,
        case when p.n = moved.partition_base then (select sum(o.missed_count) from unnest(places) as o) else 0 end
    from postbus_data.segment_partitions(moved.stream_id, moved.partition_base, moved.partition_count) as p (n);
    return moved;
end
$$;

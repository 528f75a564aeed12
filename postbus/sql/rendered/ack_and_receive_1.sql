-- Made from ../templates by `make generate`, for stream 1 with 8 partitions and segment 1; do not edit.
CREATE OR REPLACE FUNCTION postbus_data.ack_and_receive_1(stream text, consumer text, max_messages integer, ack_wait interval, expected_type text, ack_ids text[], by_position boolean)
 RETURNS TABLE(acked integer, lease text, partition integer, seqs bigint[], attempts integer[], keys text[], data text[], bytes bytea[], headers jsonb[], published_at timestamp with time zone[], saved json)
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
#variable_conflict use_variable
declare
    reader record;
    place record;
    first integer := floor(random() * 8);
    chosen integer := 0 + first;
    is_plain boolean;
    is_ready boolean := false;
    is_busy boolean;
    is_over boolean;
    begin_with integer;
    partitions integer[];
    horizon bigint;
    remaining integer;
    is_whole boolean;
    has_expired boolean;
    token bigint;
    lease_until timestamptz;
begin
    -- Each expression outside a statement is set up anew in every transaction, which takes longer than to evaluate it: so they are few.
    select
        c.id,
        c.epoch,
        c.ordering = 'key'::text as is_keyed,
        c.is_group,
        c.expire_after,
        c.max_ack_pending / (8 + 1) as quota,
        s.start_seq - 1 as start_after,
        not c.is_group or ack_wait is not null as is_leased,
        clock_timestamp() + case when c.is_group then ack_wait else c.ack_wait end as lease_until,
        true
        and c.is_plain
        and c.max_deliver is distinct from 1
        and c.max_ack_pending / (8 + 1) >= 100
        and max_messages between 1 and 1000
        and c.is_group = by_position
        and case
            when by_position then (ack_wait between interval '1 millisecond' and interval '7 days') is not false
            else ack_wait is null and c.ordering <> 'partition'::text
        end
        and not exists (
            select
            from postbus_data.due as d
            where d.consumer_id = c.id
                and d.epoch = c.epoch
                and d.lane = 0
                and d.n > coalesce(
                    (
                        select p.read_to_n
                        from postbus_data.redelivery_position as p
                        where p.consumer_id = c.id
                            and p.epoch = c.epoch
                            and p.lane = 0
                        order by p.read_to_n desc
                        limit 1
                    ),
                    0
                )
        ) as is_plain
    into reader
    from postbus_data.consumer as c
    join postbus_data.stream as s on s.id = 1
    where c.stream_name = 'orders'
        and c.name = consumer;
    acked := 0;
    if ack_ids is not null and reader.id is not null then
        -- As ack_deliveries does, which takes longer to call than to run: nearly always one lease as a whole.
        delete from postbus_data.lease as l
        where l.token = postbus_data.parse_token(ack_ids[1])
            and l.piece = 0
            and l.consumer_id + 0 = reader.id
            and l.epoch = reader.epoch
            and not l.has_history
            and not l.has_saved
            and not l.is_split
            and cardinality(ack_ids) = 1
        returning l.token, cardinality(l.seqs) into token, acked;
        if token is null then
            acked := postbus_data.ack_deliveries(reader.id, reader.epoch, ack_ids);
        elsif exists (select from postbus_data.settled as s where s.token = token) then
            -- In a later statement: the first has waited for whoever was settling some of its messages.
            with settled as (delete from postbus_data.settled as s where s.token = token returning s.seq)
            select acked - count(*) into acked from settled as s;
        end if;
    end if;

    -- Now and then somebody has to look whether it is time to sweep, or to say that the consumer is used.
    is_plain := reader.is_plain
        and current_setting('transaction_isolation'::text) = 'read committed'::text
        and (
            random() < 0.9::float8
            or (reader.is_group and reader.expire_after is null)
            or not postbus_data.run_periodic_work(postbus_data.find_consumer('orders', consumer))
        );
    if is_plain then
        lease_until := reader.lease_until;
        is_ready := pg_try_advisory_xact_lock(postbus_data.consumer_lock_class(reader.id), chosen);
        for turn in 1 .. 2 loop
            if is_ready then
                select
                    p.read_to_seq, p.horizon, p.pending_bound, p.segment, p.leases, p.parked_from, p.expired_count, p.missed_count, p.pending_since,
                    p.horizon - p.read_to_seq >= max_messages::bigint * 8 as has_enough,
                    p.leases is null
                    and not reader.is_keyed
                    and p.segment = 1
                    and p.read_to_seq >= reader.start_after
                    and p.parked_from is null
                    and p.horizon - p.read_to_seq >= max_messages::bigint * 8 as is_simple
                into place
                from postbus_data.position as p
                where p.consumer_id = reader.id
                    and p.epoch = reader.epoch
                    and p.partition = chosen
                order by p.read_to_seq desc
                limit 1;
                exit when place.is_simple;
                if (place.segment = 1 and place.read_to_seq >= reader.start_after) is not true then
                    -- It has its turn, also when others have enough.
                    begin_with := chosen;
                elsif place.parked_from is not null then
                    -- So it has, unless a lease in flight may be what they are parked behind.
                    begin_with := (select chosen where not exists (select from postbus_data.lease as l where l.token = any (place.leases)));
                elsif not place.has_enough
                    and pg_sequence_last_value('postbus_data.seq_1'::regclass) - place.horizon >= max_messages::bigint * 8
                then
                    -- So much was published since somebody looked that some of it is probably here.
                    horizon := postbus_data.horizon_of(1);
                    place.horizon := horizon;
                end if;
                is_ready := begin_with is null and place.parked_from is null and place.horizon - place.read_to_seq >= max_messages::bigint * 8;
                if is_ready and reader.is_keyed then
                    -- One snapshot for both: a nack makes a failure of a lease, and then its key is held by either.
                    select
                        exists (select from postbus_data.lease as l where l.token = any (place.leases)),
                        not exists (
                            select from postbus_data.waiting as w where w.consumer_id = reader.id and w.partition = chosen
                        )
                    into is_busy, is_ready;
                    begin_with := case when not is_busy and not is_ready then chosen end;
                    is_ready := is_ready and not is_busy;
                elsif is_ready and reader.is_group and place.leases is not null then
                    select count(*) > 0, bool_or(l.deadline <= clock_timestamp())
                    into is_busy, is_over
                    from postbus_data.lease as l
                    where l.token = any (place.leases);
                    begin_with := case when is_over then chosen end;
                    is_ready := not is_busy;
                end if;
            end if;
            exit when is_ready or turn = 2 or begin_with is not null;
            -- Somebody else is at it, or too little is left: one that has enough, and in order "key" nothing in flight.
            chosen := (
                select p.partition
                from (
                    select p.partition
                    from generate_series(1, least(16, 8 - 1)) as n
                    cross join lateral (
                        select p.partition, p.read_to_seq, p.horizon - p.read_to_seq as distance, p.segment, p.leases
                        from postbus_data.position as p
                        where p.consumer_id = reader.id
                            and p.epoch = reader.epoch
                            and p.partition = 0 + mod(chosen - 0 + n, 8)
                        order by p.read_to_seq desc
                        limit 1
                    ) as p
                    where p.distance >= max_messages::bigint * 8
                        and p.segment = 1
                        and (
                            not (reader.is_keyed or reader.is_group)
                            or not exists (select from postbus_data.lease as l where l.token = any (p.leases))
                        )
                    order by p.read_to_seq
                    offset 0
                ) as p
                where pg_try_advisory_xact_lock(postbus_data.consumer_lock_class(reader.id), p.partition)
                limit 1
            );
            is_ready := chosen is not null;
        end loop;
    end if;
    if is_ready then
        if place.pending_bound + max_messages > reader.quota then
            select r.pending_bound, r.pending_since into place.pending_bound, place.pending_since
            from postbus_data.count_in_flight(
                reader.id, reader.epoch, chosen, 0, case when reader.is_keyed then coalesce(place.leases, '{}'::bigint[]) end,
                place.pending_since
            ) as r;
        end if;
        if max_messages > 107 then
            -- If all were as large as they may be, they would not fit into an array.
            select sum(octet_length(m.data)) < 67108864
            into is_ready
            from (
                select l.data::text as data
                from postbus_data.log_1_1 as l
                where l.partition = chosen
                    and l.seq > place.read_to_seq
                    and l.seq <= place.horizon
                order by l.seq
                limit max_messages
            ) as m;
        end if;
        -- The register is read after the horizon: what lies below that is in this segment.
        if is_ready
            and place.pending_bound + max_messages <= reader.quota
            and pg_sequence_last_value('postbus_data.layout_1'::regclass) = 34359738376::bigint
        then
            select
                array_agg(m.seq), array_agg(m.key), array_agg(m.data), array_agg(m.headers), array_agg(m.published_at),
                bool_or(m.expires_at <= clock_timestamp())
            into seqs, keys, data, headers, published_at, has_expired
            from (
                select l.seq, l.key, l.data::text as data, l.headers, l.published_at, l.expires_at
                from postbus_data.log_1_1 as l
                where l.partition = chosen
                    and l.seq > place.read_to_seq
                    and l.seq <= place.horizon
                order by l.seq
                limit max_messages
            ) as m;
            if cardinality(seqs) = max_messages and has_expired is not true then
                token := postbus_data.new_token();
                with last_place as (
                    delete from postbus_data.position as p
                    where p.consumer_id = reader.id
                        and p.epoch = reader.epoch
                        and p.partition = chosen
                        and p.read_to_seq = place.read_to_seq
                ),
                leased as (
                    insert into postbus_data.lease (token, consumer_id, epoch, partition, seqs, keys, received_at, deadline)
                    select
                        token, reader.id, reader.epoch, chosen, seqs, case when reader.is_keyed then keys end, clock_timestamp(), lease_until
                    where reader.is_leased
                )
                insert into postbus_data.position (
                    consumer_id, epoch, partition, read_to_seq, horizon, pending_bound, segment, leases, expired_count, missed_count, pending_since
                )
                values (
                    reader.id, reader.epoch, chosen, seqs[cardinality(seqs)], place.horizon,
                    case when reader.is_group then 0 else place.pending_bound + cardinality(seqs) end, 1,
                    case when reader.is_keyed or (reader.is_group and reader.is_leased) then array[token] end, place.expired_count, place.missed_count,
                    case when place.pending_since is not null then least(place.pending_since, lease_until) end
                );
                lease := lpad(to_hex(token), 16, '0'::text);
                partition := chosen;
                return next;
                return;
            end if;
            if seqs is null then
                -- Lest it look full the next time.
                with last_place as (
                    delete from postbus_data.position as p
                    where p.consumer_id = reader.id
                        and p.epoch = reader.epoch
                        and p.partition = chosen
                        and p.read_to_seq = place.read_to_seq
                )
                insert into postbus_data.position (
                    consumer_id, epoch, partition, read_to_seq, horizon, pending_bound, segment, leases, expired_count, missed_count, pending_since
                )
                values (
                    reader.id, reader.epoch, chosen, place.horizon, place.horizon, place.pending_bound, 1, place.leases,
                    place.expired_count, place.missed_count, place.pending_since
                );
            end if;
        end if;
    end if;

    remaining := max_messages;

    -- No partition has enough, as with every consumer that keeps up: what there is in some of them, the oldest first. Locks, horizon and rows are
    -- separate statements, each with a snapshot younger than the one before; the register is read after the horizon.
    if is_plain and begin_with is null then
        is_whole := true;
        for turn in 0 .. (8 - 1) / 4 loop
            exit when remaining = 0;
            partitions := array(
                select 0 + mod(g.n, 8)
                from generate_series(first + turn * 4, first + least((turn + 1) * 4, 8) - 1) as g (n)
                where pg_try_advisory_xact_lock(postbus_data.consumer_lock_class(reader.id), 0 + mod(g.n, 8))
            );
            horizon := coalesce(horizon, postbus_data.horizon_of(1));
            is_ready := pg_sequence_last_value('postbus_data.layout_1'::regclass) = 34359738376::bigint;
            is_whole := is_whole and is_ready;
            exit when not is_ready;
            for lease, partition, seqs, keys, data, headers, published_at in
                with place as materialized (
                    select
                        n as partition, p.read_to_seq, p.horizon, p.pending_bound, p.expired_count, p.missed_count, p.pending_since,
                        p.segment = 1
                        and p.read_to_seq >= reader.start_after
                        and p.pending_bound + remaining <= reader.quota
                        and p.parked_from is null
                        and (
                            not (reader.is_keyed or reader.is_group)
                            or not exists (select from postbus_data.lease as l where l.token = any (p.leases))
                        )
                        and (
                            not reader.is_keyed
                            or (
                                not exists (
                                    select from postbus_data.waiting as w where w.consumer_id = reader.id and w.partition = n
                                )
                            )
                        ) as is_usable
                    from unnest(partitions) as n
                    left join lateral (
                        select p.*
                        from postbus_data.position as p
                        where p.consumer_id = reader.id
                            and p.epoch = reader.epoch
                            and p.partition = n
                        order by p.read_to_seq desc
                        limit 1
                    ) as p on true
                    where p.read_to_seq < horizon
                        or (p.read_to_seq is null and exists (select from postbus_data.log_1_1 as l where l.partition = n))
                ),
                message as materialized (
                    select l.*
                    from place as p
                    cross join lateral (
                        select l.partition, l.seq, l.key, l.data, l.headers, l.published_at, l.expires_at
                        from postbus_data.log_1_1 as l
                        where l.partition = p.partition
                            and l.seq > p.read_to_seq
                            and l.seq <= horizon
                        order by l.seq
                        limit remaining
                    ) as l
                    where p.is_usable
                    order by l.seq
                    limit remaining
                ),
                -- What is not so simple: some have expired, or they are too large together for an array.
                unfit as materialized (
                    select from message as m where m.expires_at <= clock_timestamp()
                    union all
                    select from message as m having sum(octet_length(m.data::text)) >= 67108864
                ),
                found as materialized (
                    select
                        postbus_data.new_token() as token, m.partition, array_agg(m.seq) as seqs, array_agg(m.key) as keys,
                        array_agg(m.data::text) as data, array_agg(m.headers) as headers, array_agg(m.published_at) as published_at
                    from (select m.* from message as m order by m.partition, m.seq) as m
                    where not exists (select from unfit)
                    group by m.partition
                ),
                last_place as (
                    delete from postbus_data.position as p
                    where p.consumer_id = reader.id
                        and p.epoch = reader.epoch
                        and p.partition = any (array(select f.partition from found as f))
                        and p.read_to_seq = any (array(select p.read_to_seq from found as f join place as p on p.partition = f.partition))
                ),
                leased as (
                    insert into postbus_data.lease (token, consumer_id, epoch, partition, seqs, keys, received_at, deadline)
                    select
                        f.token, reader.id, reader.epoch, f.partition, f.seqs, case when reader.is_keyed then f.keys end, clock_timestamp(),
                        lease_until
                    from found as f
                    where reader.is_leased
                ),
                moved as (
                    insert into postbus_data.position (
                        consumer_id, epoch, partition, read_to_seq, horizon, pending_bound, segment, leases, expired_count, missed_count, pending_since
                    )
                    select
                        reader.id, reader.epoch, f.partition, f.seqs[cardinality(f.seqs)], greatest(p.horizon, horizon),
                        case when reader.is_group then 0 else p.pending_bound + cardinality(f.seqs) end, 1,
                        case when reader.is_keyed or (reader.is_group and reader.is_leased) then array[f.token] end, p.expired_count, p.missed_count,
                        case when p.pending_since is not null then least(p.pending_since, lease_until) end
                    from found as f
                    join place as p on p.partition = f.partition
                )
                select lpad(to_hex(f.token), 16, '0'::text), f.partition, f.seqs, f.keys, f.data, f.headers, f.published_at
                from found as f
                union all
                -- Something is left that is not so simple.
                select null, null, null, null, null, null, null
                where exists (select from unfit) or exists (select from place as p where p.is_usable is not true)
            loop
                if lease is null then
                    is_whole := false;
                else
                    remaining := remaining - cardinality(seqs);
                    return next;
                end if;
            end loop;
        end loop;
        if remaining = 0 or (remaining < max_messages and is_whole) then
            return;
        end if;
    end if;

    return query
    select acked, b.*
    from postbus_data.receive_with_decisions(postbus_data.find_consumer('orders', consumer), remaining, ack_wait, expected_type, by_position, begin_with) as b;
    if not found and remaining = max_messages then
        lease := null;
        return next;
    end if;
end
$function$;

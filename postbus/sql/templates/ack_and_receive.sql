-- What ack_and_receive does, for one stream and its newest segment: this is where most messages are claimed. See create_receive_function.
create or replace function postbus_data.ack_and_receive_{stream_id}(
    stream text, consumer text, max_messages integer, ack_wait interval, expected_type text, ack_ids text[], by_position boolean
)
returns table (
    acked integer, lease text, partition integer, seqs bigint[], attempts integer[], keys text[], data text[], bytes bytea[], headers jsonb[],
    published_at timestamptz[], saved json
)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $body$
#variable_conflict use_variable
declare
    reader record;
    place record;
    first integer := floor(random() * {partition_count});
    chosen integer := {partition_base} + first;
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
        c.expire_after,{reader_of_levels}
        c.max_ack_pending / ({partition_count} + 1) as quota,
        s.start_seq - 1 as start_after,
        not c.is_group or ack_wait is not null as is_leased,
        clock_timestamp() + case when c.is_group then ack_wait else c.ack_wait end as lease_until,
        {is_plain}
        and c.is_plain
        and c.max_deliver is distinct from 1
        and c.max_ack_pending / ({partition_count} + 1) >= 100
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
    join postbus_data.stream as s on s.id = {stream_id}
    where c.stream_name = {stream_name}
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

{ack_and_receive_urgent}    -- Now and then somebody has to look whether it is time to sweep, or to say that the consumer is used.
    is_plain := reader.is_plain
        and current_setting('transaction_isolation'::text) = 'read committed'::text
        and (
            random() < 0.9::float8
            or (reader.is_group and reader.expire_after is null)
            or not postbus_data.run_periodic_work(postbus_data.find_consumer({stream_name}, consumer))
        );
    if is_plain then
        lease_until := reader.lease_until;
        is_ready := pg_try_advisory_xact_lock(postbus_data.consumer_lock_class(reader.id), chosen){or_wait};
        for turn in 1 .. 2 loop
            if is_ready then
                select
                    p.read_to_seq, p.horizon, p.pending_bound, p.segment, p.leases, p.parked_from, p.expired_count, p.missed_count, p.pending_since,
                    p.horizon - p.read_to_seq >= max_messages::bigint * {partition_count} as has_enough,
                    p.leases is null
                    and not reader.is_keyed
                    and p.segment = {segment}
                    and p.read_to_seq >= reader.start_after
                    and p.parked_from is null
                    and p.horizon - p.read_to_seq >= max_messages::bigint * {partition_count} as is_simple
                into place
                from postbus_data.position as p
                where p.consumer_id = reader.id
                    and p.epoch = reader.epoch
                    and p.partition = chosen
                order by p.read_to_seq desc
                limit 1;
                exit when place.is_simple;
                if (place.segment = {segment} and place.read_to_seq >= reader.start_after) is not true then
                    -- It has its turn, also when others have enough.
                    begin_with := chosen;
                elsif place.parked_from is not null then
                    -- So it has, unless a lease in flight may be what they are parked behind.
                    begin_with := (select chosen where not exists (select from postbus_data.lease as l where l.token = any (place.leases)));
                elsif not place.has_enough
                    and pg_sequence_last_value('postbus_data.seq_{stream_id}'::regclass) - place.horizon >= max_messages::bigint * {partition_count}
                then
                    -- So much was published since somebody looked that some of it is probably here.
                    horizon := postbus_data.horizon_of({stream_id});
                    place.horizon := horizon;
                end if;
                is_ready := begin_with is null and place.parked_from is null and place.horizon - place.read_to_seq >= max_messages::bigint * {partition_count};
                if is_ready and reader.is_keyed then
                    -- One snapshot for both: a nack makes a failure of a lease, and then its key is held by either.
                    select
                        exists (select from postbus_data.lease as l where l.token = any (place.leases)),
                        not exists (
                            select from postbus_data.waiting as w where w.consumer_id = reader.id and w.partition = chosen
                        ){no_older_failures}
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
                    from generate_series(1, least(16, {partition_count} - 1)) as n
                    cross join lateral (
                        select p.partition, p.read_to_seq, p.horizon - p.read_to_seq as distance, p.segment, p.leases
                        from postbus_data.position as p
                        where p.consumer_id = reader.id
                            and p.epoch = reader.epoch
                            and p.partition = {partition_base} + mod(chosen - {partition_base} + n, {partition_count})
                        order by p.read_to_seq desc
                        limit 1
                    ) as p
                    where p.distance >= max_messages::bigint * {partition_count}
                        and p.segment = {segment}
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
                reader.id, reader.epoch, chosen, {partition_base}, case when reader.is_keyed then coalesce(place.leases, '{}'::bigint[]) end,
                place.pending_since
            ) as r;
        end if;
        if max_messages > {array_limit} then
            -- If all were as large as they may be, they would not fit into an array.
            select sum(octet_length(m.data)) < 67108864
            into is_ready
            from (
                select l.data::{data_type} as data
                from {log_table} as l
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
            and pg_sequence_last_value('postbus_data.layout_{stream_id}'::regclass) = {layout}::bigint
        then
            select
                array_agg(m.seq), array_agg(m.key), array_agg(m.data), array_agg(m.headers), array_agg(m.published_at),
                bool_or(m.expires_at <= clock_timestamp())
            into seqs, keys, {data_column}, headers, published_at, has_expired
            from (
                select l.seq, l.key, l.data::{data_type} as data, l.headers, l.published_at, l.expires_at
                from {log_table} as l
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
                    case when reader.is_group then 0 else place.pending_bound + cardinality(seqs) end, {segment},
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
                    reader.id, reader.epoch, chosen, place.horizon, place.horizon, place.pending_bound, {segment}, place.leases,
                    place.expired_count, place.missed_count, place.pending_since
                );
            end if;
        end if;
    end if;

    remaining := max_messages;
{ack_and_receive_from_many}
    return query
    select acked, b.*
    from postbus_data.receive_with_decisions(postbus_data.find_consumer({stream_name}, consumer), remaining, ack_wait, expected_type, by_position, begin_with) as b;
    if not found and remaining = max_messages then
        lease := null;
        return next;
    end if;
end
$body$;

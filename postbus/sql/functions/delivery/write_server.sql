create or replace function postbus_data.write_server(stream_id integer)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
/*
Write the function postbus_data.serve_<stream id>, which acks and receives as postbus_data.serve does.

It goes the shortest way when nothing has to be decided about messages of the newest segment, which is nearly always so: those of one partition that has
enough of them, or else what there is in several. Few statements, planned once for a session (docs/decisions/0008). Whatever it does not know or like
it leaves to claim_batches. Written anew when the stream is created or altered and when a new segment is begun.
*/
declare
    stream postbus_data.stream;
    layout bigint := pg_sequence_last_value(to_regclass('postbus_data.layout_' || stream_id));
begin
    select s.* into stream from postbus_data.stream as s where s.id = stream_id;
    execute format(
        $template$
create or replace function postbus_data.serve_%1$s(
    stream text, consumer text, max_messages integer, ack_wait interval, expected_type text, ack_ids text[]
)
returns table (acked integer, batch postbus_data.batch)
language plpgsql
volatile
as $body$
#variable_conflict use_variable
declare
    reader record;
    place record;
    first integer := floor(random() * %4$s);
    partition integer := %3$s + first;
    is_plain boolean;
    is_ready boolean := false;
    is_busy boolean;
    needed bigint := max_messages::bigint * %4$s;
    begin_with integer;
    partitions integer[];
    horizon bigint;
    remaining integer := max_messages;
    is_whole boolean := true;
    seqs bigint[];
    has_expired boolean;
    token bigint;
    lease_until timestamptz;
begin
    acked := 0;
    select
        c.id,
        c.epoch,
        c.ordering = 'key'::text as is_keyed,
        c.is_group,
        c.ack_wait,
        c.expire_after,
        c.max_ack_pending / (%4$s + 1) as quota,
        s.start_seq - 1 as start_after,
        %11$s
        and not c.paused
        and case when c.is_group then ack_wait = interval '0' else ack_wait is null and c.ordering <> 'partition'::text end
        and c.on_dead <> 'hold'::text
        and c.max_per_key is null
        and c.keep_history is null
        and c.filter_key_regex is null
        and c.filter_headers is null
        and c.filter_headers_not is null
        and c.filter_data is null
        and not exists (
            select
            from postbus_data.due as d
            where d.consumer_id = c.id
                and d.epoch = c.epoch
                and d.n > coalesce(
                    (
                        select p.hi
                        from postbus_data.position as p
                        where p.consumer_id = c.id
                            and p.epoch = c.epoch
                            and p.partition = -1
                        order by p.hi desc
                        limit 1
                    ),
                    0
                )
        ) as is_plain
    into reader
    from postbus_data.consumer as c
    join postbus_data.stream as s on s.id = %1$s
    where c.stream_name = %5$L
        and c.name = consumer;
    if ack_ids is not null and reader.id is not null then
        acked := postbus_data.finish(reader.id, reader.epoch, ack_ids);
    end if;

    -- Now and then somebody has to look whether it is time to sweep, or to say that the consumer is used.
    is_plain := reader.is_plain
        and max_messages between 1 and %6$s
        and reader.quota >= 100
        and current_setting('transaction_isolation'::text) = 'read committed'::text
        and (
            random() < 0.9::float8
            or (reader.is_group and reader.expire_after is null)
            or not postbus_data.tend(postbus_data.find_consumer(stream, consumer))
        );
    if is_plain then
        lease_until := clock_timestamp() + reader.ack_wait;
        is_ready := pg_try_advisory_xact_lock(1610612736 + reader.id, partition);
        for turn in 1 .. 2 loop
            if is_ready then
                select p.hi, p.horizon, p.pending_bound, p.segment, p.leases, p.parked_from, p.expired_count, p.missed_count, p.pending_since
                into place
                from postbus_data.position as p
                where p.consumer_id = reader.id
                    and p.epoch = reader.epoch
                    and p.partition = partition
                order by p.hi desc
                limit 1;
                if (place.segment = %2$s and place.hi >= reader.start_after) is not true then
                    -- It has its turn, also when others have enough.
                    begin_with := partition;
                elsif place.parked_from is not null then
                    -- So it has, unless a lease in flight may be what they are parked behind.
                    begin_with := (select partition where not exists (select from postbus_data.lease as l where l.token = any (place.leases)));
                elsif place.horizon - place.hi < needed
                    and pg_sequence_last_value('postbus_data.seq_%1$s'::regclass) - place.horizon >= needed
                then
                    -- So much was published since somebody looked that some of it is probably here.
                    horizon := postbus_data.horizon_of(%1$s);
                    place.horizon := horizon;
                end if;
                is_ready := begin_with is null and place.parked_from is null and place.horizon - place.hi >= needed;
                if is_ready and reader.is_keyed then
                    -- One snapshot for both: a nack makes a failure of a lease, and then its key is held by either.
                    select
                        exists (select from postbus_data.lease as l where l.token = any (place.leases)),
                        not exists (
                            select from postbus_data.waiting as w where w.consumer_id = reader.id and w.partition = partition
                        )%12$s
                    into is_busy, is_ready;
                    begin_with := case when not is_busy and not is_ready then partition end;
                    is_ready := is_ready and not is_busy;
                end if;
            end if;
            exit when is_ready or turn = 2 or begin_with is not null;
            -- Somebody else is at it, or too little is left: one that has enough, and in order "key" nothing in flight.
            partition := (
                select p.partition
                from (
                    select p.partition
                    from generate_series(1, least(16, %4$s - 1)) as n
                    cross join lateral (
                        select p.partition, p.hi, p.horizon - p.hi as distance, p.segment, p.leases
                        from postbus_data.position as p
                        where p.consumer_id = reader.id
                            and p.epoch = reader.epoch
                            and p.partition = %3$s + mod(partition - %3$s + n, %4$s)
                        order by p.hi desc
                        limit 1
                    ) as p
                    where p.distance >= needed
                        and p.segment = %2$s
                        and (not reader.is_keyed or not exists (select from postbus_data.lease as l where l.token = any (p.leases)))
                    order by p.hi
                    offset 0
                ) as p
                where pg_try_advisory_xact_lock(1610612736 + reader.id, p.partition)
                limit 1
            );
            is_ready := partition is not null;
        end loop;
    end if;
    if is_ready then
        if place.pending_bound + max_messages > reader.quota then
            select r.pending_bound, r.pending_since into place.pending_bound, place.pending_since
            from postbus_data.recount(
                reader.id, reader.epoch, partition, %3$s, case when reader.is_keyed then coalesce(place.leases, '{}'::bigint[]) end,
                place.pending_since
            ) as r;
        end if;
        -- The register is read after the horizon: what lies below that is in this segment.
        is_ready := place.pending_bound + max_messages <= reader.quota
            and (not reader.is_group or place.leases is null)
            and pg_sequence_last_value('postbus_data.layout_%1$s'::regclass) = %7$s::bigint;
        if is_ready then
            select
                array_agg(m.seq), array_agg(m.key), array_agg(m.data), array_agg(m.headers), array_agg(m.published_at),
                bool_or(m.expires_at <= clock_timestamp())
            into seqs, batch.keys, batch.%8$s, batch.headers, batch.published_at, has_expired
            from (
                select l.seq, l.key, l.data::%9$s as data, l.headers, l.published_at, l.expires_at
                from %10$s as l
                where l.partition = partition
                    and l.seq > place.hi
                    and l.seq <= place.horizon
                order by l.seq
                limit max_messages
            ) as m;
            if cardinality(seqs) = max_messages and not coalesce(has_expired, false) then
                token := postbus_data.new_token();
                with last_place as (
                    delete from postbus_data.position as p
                    where p.consumer_id = reader.id
                        and p.epoch = reader.epoch
                        and p.partition = partition
                        and p.hi = place.hi
                ),
                leased as (
                    insert into postbus_data.lease (token, consumer_id, epoch, partition, seqs, keys, received_at, deadline)
                    select
                        token, reader.id, reader.epoch, partition, seqs, case when reader.is_keyed then batch.keys end, clock_timestamp(),
                        lease_until
                    where not reader.is_group
                )
                insert into postbus_data.position (
                    consumer_id, epoch, partition, hi, horizon, pending_bound, segment, leases, expired_count, missed_count, pending_since
                )
                values (
                    reader.id, reader.epoch, partition, seqs[max_messages], place.horizon,
                    case when reader.is_group then 0 else place.pending_bound + max_messages end, %2$s,
                    case when reader.is_keyed then array[token] end, place.expired_count, place.missed_count,
                    case when place.pending_since is not null then least(place.pending_since, lease_until) end
                );
                batch.seqs := seqs;
                batch.partition := partition;
                batch.lease := lpad(to_hex(token), 16, '0'::text);
                return next;
                return;
            end if;
            if seqs is null then
                -- Lest it look full the next time.
                with last_place as (
                    delete from postbus_data.position as p
                    where p.consumer_id = reader.id
                        and p.epoch = reader.epoch
                        and p.partition = partition
                        and p.hi = place.hi
                )
                insert into postbus_data.position (
                    consumer_id, epoch, partition, hi, horizon, pending_bound, segment, leases, expired_count, missed_count, pending_since
                )
                values (
                    reader.id, reader.epoch, partition, place.horizon, place.horizon, place.pending_bound, %2$s, place.leases,
                    place.expired_count, place.missed_count, place.pending_since
                );
            end if;
        end if;
    end if;

    -- No partition has enough, as with every consumer that keeps up: what there is in some of them, the oldest first. Locks, horizon and rows are
    -- separate statements, each with a snapshot younger than the one before; the register is read after the horizon.
    if is_plain and begin_with is null then
        for turn in 0 .. (%4$s - 1) / %13$s loop
            exit when remaining = 0;
            partitions := array(
                select %3$s + mod(g.n, %4$s)
                from generate_series(first + turn * %13$s, first + least((turn + 1) * %13$s, %4$s) - 1) as g (n)
                where pg_try_advisory_xact_lock(1610612736 + reader.id, %3$s + mod(g.n, %4$s))
            );
            horizon := coalesce(horizon, postbus_data.horizon_of(%1$s));
            is_ready := pg_sequence_last_value('postbus_data.layout_%1$s'::regclass) = %7$s::bigint;
            is_whole := is_whole and is_ready;
            exit when not is_ready;
            for batch in
                with place as materialized (
                    select
                        n as partition, p.hi, p.horizon, p.pending_bound, p.expired_count, p.missed_count, p.pending_since,
                        p.segment = %2$s
                        and p.hi >= reader.start_after
                        and p.pending_bound + remaining <= reader.quota
                        and p.parked_from is null
                        and (not reader.is_group or p.leases is null)
                        and (
                            not reader.is_keyed
                            or (
                                not exists (select from postbus_data.lease as l where l.token = any (p.leases))
                                and not exists (
                                    select from postbus_data.waiting as w where w.consumer_id = reader.id and w.partition = n
                                )%12$s
                            )
                        ) as is_usable
                    from unnest(partitions) as n
                    left join lateral (
                        select p.*
                        from postbus_data.position as p
                        where p.consumer_id = reader.id
                            and p.epoch = reader.epoch
                            and p.partition = n
                        order by p.hi desc
                        limit 1
                    ) as p on true
                    where p.hi < horizon
                        or (p.hi is null and exists (select from %10$s as l where l.partition = n))
                ),
                message as materialized (
                    select l.*
                    from place as p
                    cross join lateral (
                        select l.partition, l.seq, l.key, l.data, l.headers, l.published_at, l.expires_at
                        from %10$s as l
                        where l.partition = p.partition
                            and l.seq > p.hi
                            and l.seq <= horizon
                        order by l.seq
                        limit remaining
                    ) as l
                    where p.is_usable
                    order by l.seq
                    limit remaining
                ),
                expired as materialized (
                    select from message as m where m.expires_at <= clock_timestamp()
                ),
                found as materialized (
                    select
                        postbus_data.new_token() as token, m.partition, array_agg(m.seq) as seqs, array_agg(m.key) as keys,
                        array_agg(m.data::%9$s) as data, array_agg(m.headers) as headers, array_agg(m.published_at) as published_at
                    from (select m.* from message as m order by m.partition, m.seq) as m
                    where not exists (select from expired)
                    group by m.partition
                ),
                last_place as (
                    delete from postbus_data.position as p
                    where p.consumer_id = reader.id
                        and p.epoch = reader.epoch
                        and p.partition = any (array(select f.partition from found as f))
                        and p.hi = any (array(select p.hi from found as f join place as p on p.partition = f.partition))
                ),
                leased as (
                    insert into postbus_data.lease (token, consumer_id, epoch, partition, seqs, keys, received_at, deadline)
                    select
                        f.token, reader.id, reader.epoch, f.partition, f.seqs, case when reader.is_keyed then f.keys end, clock_timestamp(),
                        lease_until
                    from found as f
                    where not reader.is_group
                ),
                moved as (
                    insert into postbus_data.position (
                        consumer_id, epoch, partition, hi, horizon, pending_bound, segment, leases, expired_count, missed_count, pending_since
                    )
                    select
                        reader.id, reader.epoch, f.partition, f.seqs[cardinality(f.seqs)], greatest(p.horizon, horizon),
                        case when reader.is_group then 0 else p.pending_bound + cardinality(f.seqs) end, %2$s,
                        case when reader.is_keyed then array[f.token] end, p.expired_count, p.missed_count,
                        case when p.pending_since is not null then least(p.pending_since, lease_until) end
                    from found as f
                    join place as p on p.partition = f.partition
                )
                select lpad(to_hex(f.token), 16, '0'::text), f.partition, f.seqs, null, f.keys, %14$s, f.headers, f.published_at
                from found as f
                union all
                -- Something is left that is not so simple.
                select null, null, null, null, null, null, null, null, null
                where exists (select from expired) or exists (select from place as p where p.is_usable is not true)
            loop
                if batch.lease is null then
                    is_whole := false;
                else
                    remaining := remaining - cardinality(batch.seqs);
                    return next;
                end if;
            end loop;
        end loop;
        if remaining = 0 or (remaining < max_messages and is_whole) then
            return;
        end if;
    end if;

    for batch in
        select b.*
        from postbus_data.claim_batches(postbus_data.find_consumer(stream, consumer), remaining, ack_wait, expected_type, begin_with) as b
    loop
        return next;
    end loop;
    if not found and remaining = max_messages then
        batch := null;
        return next;
    end if;
end
$body$
        $template$,
        stream.id,
        layout >> 35,
        (layout >> 11) & 16777215,
        layout & 2047,
        stream.name,
        least(1000, 900000000 / stream.max_message_bytes),
        layout,
        case stream.data_type when 'bytes' then 'bytes' else 'data' end,
        case stream.data_type when 'bytes' then 'bytea' else 'text' end,
        postbus_data.log_table(stream.id, (layout >> 35)::integer),
        case when stream.one_message_per_key then 'false' else 'true' end,
        -- Failed messages of an older layout hold their keys too.
        case
            when (layout >> 11) & 16777215 > 0 then format(
                ' and not exists (select from postbus_data.waiting as w where w.consumer_id = reader.id and w.partition < %s)',
                (layout >> 11) & 16777215
            )
            else ''
        end,
        -- Not all of them, so that another worker finds some too.
        least(16, ((layout & 2047) + 1) / 2)::text,
        case stream.data_type when 'bytes' then 'null, f.data' else 'f.data, null' end
    );
end
$$;

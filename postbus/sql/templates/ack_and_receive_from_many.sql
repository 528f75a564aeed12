    -- No partition has enough, as with every consumer that keeps up: what there is in some of them, the oldest first. Locks, horizon and rows are
    -- separate statements, each with a snapshot younger than the one before; the register is read after the horizon.
    if is_plain and begin_with is null then
        is_whole := true;
        for turn in 0 .. ({partition_count} - 1) / {partitions_at_once} loop
            exit when remaining = 0;
            partitions := array(
                select {partition_base} + mod(g.n, {partition_count})
                from generate_series(first + turn * {partitions_at_once}, first + least((turn + 1) * {partitions_at_once}, {partition_count}) - 1) as g (n)
                where pg_try_advisory_xact_lock(postbus_data.consumer_lock_class(reader.id), {partition_base} + mod(g.n, {partition_count}))
            );
            horizon := coalesce(horizon, postbus_data.horizon_of({stream_id}));
            is_ready := pg_sequence_last_value('postbus_data.layout_{stream_id}'::regclass) = {layout}::bigint;
            is_whole := is_whole and is_ready;
            exit when not is_ready;
            for lease, partition, seqs, keys, {data_column}, headers, published_at in
                with place as materialized (
                    select
                        n as partition, p.read_to_seq, p.horizon, p.pending_bound, p.expired_count, p.missed_count, p.pending_since,
                        p.segment = {segment}
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
                                ){no_older_failures}
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
                        or (p.read_to_seq is null and exists (select from {log_table} as l where l.partition = n))
                ),
                message as materialized (
                    select l.*
                    from place as p
                    cross join lateral (
                        select l.partition, l.seq, l.key, l.data, l.headers, l.published_at, l.expires_at
                        from {log_table} as l
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
                    select from message as m having sum(octet_length(m.data::{data_type})) >= 67108864
                ),
                found as materialized (
                    select
                        postbus_data.new_token() as token, m.partition, array_agg(m.seq) as seqs, array_agg(m.key) as keys,
                        array_agg(m.data::{data_type}) as data, array_agg(m.headers) as headers, array_agg(m.published_at) as published_at
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
                        case when reader.is_group then 0 else p.pending_bound + cardinality(f.seqs) end, {segment},
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

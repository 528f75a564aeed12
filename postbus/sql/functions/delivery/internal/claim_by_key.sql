create or replace function postbus_data.claim_by_key(reader postbus_data.consumer, claim postbus_data.receive_state, wanted integer)
returns postbus_data.receive_state
language plpgsql
volatile
as $$
/*
In order "key": find the keys of a partition that are not free, and lease messages that waited for a key that has become free.

A key is not free while a lease in flight holds a message of it, whatever its level, while a message of it and of the same level has failed or is parked,
or while a dead letter holds it. Failed and parked messages go first, in order of seq, up to the first message of the key that is not due yet.

After a change of the partition count, failed messages of older partitions belong to the partition that their key has now. They
are leased under the partition that they were published to, and only those of one such partition at a time: when a message
fails, the later messages of its key to return are in its lease.

Its caller holds the partition's mutex. Leases are read before failures: so a nack that commits in between leaves its key
blocked twice, and not free.
Returns  the claim, with claim.blocked; its place is null when no new message may be leased now.
Touches  lease, position (insert), waiting, parked (delete).
*/
declare
    place postbus_data.position := claim.place;
    -- Failed and parked messages hold their keys within their level.
    lane integer := (claim.place).partition / 100000000 * 100000000;
    partition_base integer := lane + postbus_data.layout_base(claim.layout);
    in_flight text[];
    origin integer;
    seqs bigint[];
    attempts integer[];
    exceptional text[];
    free_seqs bigint[];
    taken_seqs bigint[];
    parked_left bigint;
begin
    claim.blocked := null;
    if place.leases is not null then
        select
            array_agg(distinct l.token),
            array_agg(distinct m.key) filter (where m.key is not null and not exists (
                select from postbus_data.settled as s where s.token = l.token and s.seq = m.seq
            ))
        into place.leases, in_flight
        -- One probe for each token. A join with unnest would be planned as a walk through the whole index.
        from postbus_data.lease as l
        cross join lateral unnest(l.seqs, l.keys) as m (seq, key)
        where l.token = any (place.leases);
    end if;

    if place.parked_from is not null
        or reader.on_dead = 'hold'
        or exists (select from postbus_data.waiting as w where w.consumer_id = reader.id and w.partition = place.partition)
        or exists (select from postbus_data.waiting as w where w.consumer_id = reader.id and w.partition >= lane and w.partition < partition_base)
    then
        with held as (
            select w.partition, w.seq, w.key, w.attempts, w.due_at <= clock_timestamp() as is_due
            from postbus_data.waiting as w
            where w.consumer_id = reader.id
                and w.partition = place.partition
            union all
            select w.partition, w.seq, w.key, w.attempts, w.due_at <= clock_timestamp()
            from postbus_data.waiting as w
            where w.consumer_id = reader.id
                and w.partition >= lane
                and w.partition < partition_base
                and lane + postbus_data.current_partition(claim.layout, w.key, w.seq) = place.partition
            union all
            select p.partition, p.seq, p.key, 0, true
            from postbus_data.parked as p
            where p.consumer_id = reader.id
                and p.epoch = reader.epoch
                and p.partition = place.partition
                and p.seq >= place.parked_from
            union all
            -- Holds its key, and is never given itself.
            select d.partition, d.seq, d.key, 0, false
            from postbus_data.dead_letter as d
            where reader.on_dead = 'hold'
                and d.consumer_id + 0 = reader.id
                -- Whatever their levels.
                and d.partition = any (case
                    when postbus_data.has_levels(claim.layout) then array(select l + place.partition - lane from unnest(postbus_data.lanes(reader.stream_id)) as l)
                    else array[place.partition]
                end)
                and d.key is not null
            union all
            select d.partition, d.seq, d.key, 0, false
            from postbus_data.dead_letter as d
            where reader.on_dead = 'hold'
                and d.consumer_id + 0 = reader.id
                and mod(d.partition, 100000000) < partition_base - lane
                and d.key is not null
        ),
        by_key as (
            -- Messages without a key stand alone.
            select h.*, case when h.key is null then h.seq end as alone,
                first_value(h.partition) over (partition by h.key, case when h.key is null then h.seq end order by h.seq) as key_origin
            from held as h
        ),
        judged as (
            select
                k.*,
                bool_and(k.is_due and k.partition = k.key_origin and (k.key = any (in_flight)) is not true) over so_far
                and row_number() over so_far <= coalesce(reader.max_per_key, wanted) as is_free
            from by_key as k
            window so_far as (partition by k.key, k.alone order by k.seq)
        )
        select
            array_agg(j.seq order by j.seq) filter (where j.is_free and j.partition = j.origin),
            array_agg(j.attempts + 1 order by j.seq) filter (where j.is_free and j.partition = j.origin),
            array_agg(distinct j.key),
            min(j.origin)
        into seqs, attempts, exceptional, origin
        from (select j.*, first_value(j.partition) over (order by j.is_free desc, j.seq) as origin from judged as j) as j;
    end if;
    if seqs is not null then
        seqs := seqs[1:wanted];
        attempts := attempts[1:wanted];
        free_seqs := postbus_data.lock_waiting(reader.id, origin, seqs);
        with taken as (
            delete from postbus_data.waiting as w
            where w.consumer_id = reader.id
                and w.partition = origin
                and w.seq = any (free_seqs)
            returning w.seq
        )
        select array_agg(t.seq) into taken_seqs from taken as t;
        if place.parked_from is not null then
            with taken as (
                delete from postbus_data.parked as p
                where p.consumer_id = reader.id
                    and p.epoch = reader.epoch
                    and p.partition = place.partition
                    and p.seq = any (free_seqs)
                returning p.seq
            )
            select place.parked_count - count(*), taken_seqs || array_agg(t.seq)
            into place.parked_count, taken_seqs
            from taken as t;
            select p.seq into parked_left
            from postbus_data.parked as p
            where p.consumer_id = reader.id
                and p.epoch = reader.epoch
                and p.partition = place.partition
                and p.seq >= place.parked_from
            order by p.seq
            limit 1;
            place.parked_from := parked_left;
        end if;
        if cardinality(taken_seqs) is distinct from cardinality(seqs) then
            -- A late ack holds some of them.
            select array_agg(m.seq order by m.place), array_agg(m.attempt order by m.place)
            into seqs, attempts
            from unnest(seqs, attempts) with ordinality as m (seq, attempt, place)
            where m.seq = any (taken_seqs);
        end if;
        claim.messages := postbus_data.lease_redelivered(reader, claim, place, origin, seqs, attempts);
        claim.place := null;
        return claim;
    end if;

    if in_flight is not null or exceptional is not null or reader.max_per_key is not null then
        claim.blocked := coalesce(in_flight, '{}') || array_remove(coalesce(exceptional, '{}'), null);
    end if;
    claim.place := place;
    return claim;
end
$$;

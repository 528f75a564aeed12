create or replace function postbus_data.claim_by_partition(reader postbus_data.consumer, claim postbus_data.receive_state, wanted integer)
returns postbus_data.receive_state
language plpgsql
volatile
as $$
/*
In order "partition": decide whether new messages of a partition may be leased. They may not while one of its leases is in
flight or one of its messages waits for redelivery. Waiting messages at its head are leased here, in order, as far as they are
due; the first one that is not due, or that a late ack holds, holds the partition.

Its caller holds the partition's mutex.
Returns  the claim; its place is null when no new message may be leased.
Touches  lease, position (insert), waiting (delete).
*/
declare
    place postbus_data.position := claim.place;
    lane integer := (claim.place).partition / 100000000 * 100000000;
    partition_base integer := lane + postbus_data.layout_base(claim.layout);
    origin integer;
    seqs bigint[];
    attempts integer[];
begin
    claim.place := null;
    if exists (select from postbus_data.lease as l where l.token = any (place.leases)) then
        return claim;
    end if;
    place.leases := null;
    select array_agg(h.seq order by h.seq), array_agg(h.attempts + 1 order by h.seq) filter (where h.is_due), min(h.origin)
    into seqs, attempts, origin
    from (
        select f.*, bool_and(f.due_at <= clock_timestamp() and f.partition = f.origin) over (order by f.seq) as is_due
        from (
            select w.*, first_value(w.partition) over (order by w.seq) as origin
            from (
                (
                    select w.partition, w.seq, w.attempts, w.due_at
                    from postbus_data.waiting as w
                    where w.consumer_id = reader.id
                        and w.partition = place.partition
                    order by w.seq
                    limit wanted
                )
                union all
                -- A message of an older layout, redelivered.
                select w.partition, w.seq, w.attempts, w.due_at
                from postbus_data.waiting as w
                where w.consumer_id = reader.id
                    and w.partition >= lane
                    and w.partition < partition_base
                    and lane + postbus_data.current_partition(claim.layout, w.key, w.seq) = place.partition
            ) as w
        ) as f
    ) as h;
    if seqs is null then
        claim.place := place;
    elsif attempts is not null then
        seqs := seqs[1:least(cardinality(attempts), wanted)];
        attempts := attempts[1:cardinality(seqs)];
        seqs := postbus_data.lock_waiting(reader.id, origin, seqs);
        with taken as (
            delete from postbus_data.waiting as w
            where w.consumer_id = reader.id
                and w.partition = origin
                and w.seq = any (seqs)
            returning w.seq, w.attempts
        )
        select array_agg(t.seq order by t.seq), array_agg(t.attempts + 1 order by t.seq) into seqs, attempts from taken as t;
        if seqs is not null then
            claim.messages := postbus_data.lease_redelivered(reader, claim, place, origin, seqs, attempts);
        end if;
    end if;
    return claim;
end
$$;

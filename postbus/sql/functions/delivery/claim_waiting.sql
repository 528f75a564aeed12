create or replace function postbus_data.claim_waiting(
    reader postbus_data.consumer,
    claim postbus_data.claim,
    place postbus_data.position,
    wanted integer
)
returns postbus_data.claim
language plpgsql
volatile
as $$
/*
In order "partition": lease the failed messages at the head of a partition, in order, as far as they are due. The first that is not due
holds the partition.

Its caller holds the partition's mutex and has seen that nothing of it is in flight.
Touches  lease, position (insert), waiting (delete).
*/
#variable_conflict use_variable
declare
    token bigint := postbus_data.new_token();
    seqs bigint[];
    attempts integer[];
begin
    select array_agg(h.seq order by h.seq), array_agg(h.attempts + 1 order by h.seq)
    into seqs, attempts
    from (
        select w.seq, w.attempts, bool_and(w.due_at <= clock_timestamp()) over (order by w.seq) as is_due
        from (
            select w.*
            from postbus_data.waiting as w
            where w.consumer_id = reader.id
                and w.partition = place.partition
            order by w.seq
            limit wanted
        ) as w
    ) as h
    where h.is_due;
    if seqs is null then
        return claim;
    end if;

    claim.messages := postbus_data.fetch_named(reader.stream_id, claim.data_type, place.partition, seqs, attempts, token);
    delete from postbus_data.waiting as w
    where w.consumer_id = reader.id
        and w.partition = place.partition
        and w.seq = any (seqs);
    if claim.messages is null then
        return claim;
    end if;
    insert into postbus_data.lease (token, consumer_id, epoch, partition, seqs, attempts, received_at, deadline)
    select token, reader.id, reader.epoch, place.partition, array_agg(m.seq), array_agg(m.attempt), clock_timestamp(), claim.lease_until
    from unnest(claim.messages) as m;
    place.lease_token := token;
    perform postbus_data.move_on(place, place.hi);
    return claim;
end
$$;

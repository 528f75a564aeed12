create or replace function postbus_data.claim_partition(
    reader postbus_data.consumer,
    claim postbus_data.claim,
    partition integer,
    wanted integer
)
returns postbus_data.claim
language plpgsql
volatile
as $$
/*
Lease the next messages of one partition: one row of lease, one of position. Hot.

Touches  lease, position (insert; delete of the last position).
Locks    the partition's mutex; busy when somebody else has it.

Mutex, horizon and rows are separate statements, each with a snapshot younger than the one before.
*/
#variable_conflict use_variable
declare
    place postbus_data.position;
    is_new boolean;
    horizon bigint;
    token bigint := postbus_data.new_token();
begin
    claim.messages := null;
    claim.busy := not pg_try_advisory_xact_lock(postbus_data.mutex_class(reader.id), partition);
    if claim.busy then
        return claim;
    end if;
    select p.* into place
    from postbus_data.position as p
    where p.consumer_id = reader.id
        and p.epoch = reader.epoch
        and p.partition = partition
    order by p.hi desc
    limit 1;
    is_new := place.hi is null;
    if is_new then
        place := row(reader.id, reader.epoch, partition, reader.start_after, 0, null, 0);
    end if;

    if reader.ordering = 'partition' then
        if exists (select from postbus_data.lease as l where l.token = place.lease_token) then
            return claim;
        end if;
        if exists (
            select from postbus_data.waiting as w where w.consumer_id = reader.id and w.partition = partition
        ) then
            return postbus_data.claim_waiting(reader, claim, place, wanted);
        end if;
    end if;
    if place.pending_bound + wanted > claim.quota then
        place.pending_bound := postbus_data.in_flight(reader.id, reader.epoch, partition, false);
        wanted := least(wanted, claim.quota - place.pending_bound);
        if wanted <= 0 then
            return claim;
        end if;
    end if;

    -- The horizon seen by an earlier claim serves as long as it leaves enough to read.
    horizon := greatest(place.horizon, claim.horizon);
    if claim.horizon is null and horizon - place.hi < wanted then
        claim.horizon := postbus_data.horizon_of(reader.stream_id);
        horizon := greatest(horizon, claim.horizon);
    end if;
    if horizon <= greatest(place.hi, claim.start_seq - 1) then
        return claim;
    end if;
    claim.messages := postbus_data.fetch_messages(
        reader.stream_id, partition, greatest(place.hi, claim.start_seq - 1), horizon, wanted, token
    );
    if claim.horizon is null and (cardinality(claim.messages) = wanted) is not true then
        claim.horizon := postbus_data.horizon_of(reader.stream_id);
        if claim.horizon > horizon then
            horizon := claim.horizon;
            claim.messages := postbus_data.fetch_messages(
                reader.stream_id, partition, greatest(place.hi, claim.start_seq - 1), horizon, wanted, token
            );
        end if;
    end if;
    if claim.messages is null then
        return claim;
    end if;

    insert into postbus_data.lease (token, consumer_id, epoch, partition, seqs, received_at, deadline)
    select token, reader.id, reader.epoch, partition, array_agg(m.seq), clock_timestamp(), claim.lease_until
    from unnest(claim.messages) as m;
    insert into postbus_data.position (consumer_id, epoch, partition, hi, horizon, lease_token, pending_bound)
    values (
        reader.id, reader.epoch, partition, (claim.messages[cardinality(claim.messages)]).seq, horizon, token,
        place.pending_bound + cardinality(claim.messages)
    );
    if not is_new then
        delete from postbus_data.position as p
        where p.consumer_id = reader.id
            and p.epoch = reader.epoch
            and p.partition = partition
            and p.hi = place.hi;
    end if;
    return claim;
end
$$;

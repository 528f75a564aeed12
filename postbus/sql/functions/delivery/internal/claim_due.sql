create or replace function postbus_data.claim_due(
    reader postbus_data.consumer,
    claim postbus_data.receive_state,
    wanted integer,
    lane integer default 0
)
returns postbus_data.receive_state
language plpgsql
volatile
as $$
/*
Lease messages of the redelivery log of a level, in the order in which they came due: one lease row for each partition among them. Messages
purged since then are skipped.

Touches  lease, redelivery_position (insert; delete of the last one), due (delete).
Locks    the mutex of the redelivery logs; the claim is busy when another session holds it.
*/
#variable_conflict use_variable
declare
    place postbus_data.redelivery_position;
    last_n bigint;
    token bigint;
    batch record;
    messages postbus.delivery[];
    bound integer;
begin
    claim.messages := null;
    claim.busy := false;
    claim.busy := not pg_try_advisory_xact_lock(postbus_data.consumer_lock_class(reader.id), postbus_data.consumer_lock('redeliver'));
    if claim.busy then
        return claim;
    end if;
    place := postbus_data.redelivery_position_of(reader, lane);
    -- The logs of all levels share the quota, and each position knows only what was read from its own.
    bound := case
        when postbus_data.has_levels(claim.layout) then postbus_data.in_flight(reader.id, reader.epoch, null, true)
        else place.pending_bound
    end;
    if bound + wanted > claim.quota then
        bound := postbus_data.in_flight(reader.id, reader.epoch, null, true);
        wanted := least(wanted, claim.quota - bound);
        if wanted <= 0 then
            return claim;
        end if;
    end if;

    for batch in
        select
            d.partition,
            array_agg(d.seq) as seqs,
            array_agg(d.attempts + 1) as attempts,
            max(d.n) as last_n
        from (
            select d.*
            from postbus_data.due as d
            where d.consumer_id = reader.id
                and d.epoch = reader.epoch
                and d.lane = lane
                and d.n > place.read_to_n
            order by d.n
            limit wanted
        ) as d
        group by d.partition
    loop
        token := postbus_data.new_token();
        messages := postbus_data.fetch_named(
            reader.stream_id, claim.data_type, batch.partition, batch.seqs, batch.attempts, token, live_only => true
        );
        perform postbus_data.add_dead_letters_without_message(reader, batch.partition, batch.seqs, batch.attempts, messages);
        last_n := greatest(last_n, batch.last_n);
        continue when messages is null;
        insert into postbus_data.lease (
            token, consumer_id, epoch, partition, seqs, attempts, received_at, deadline, has_history, has_saved
        )
        select
            token, reader.id, reader.epoch, batch.partition, array_agg(m.seq), array_agg(m.attempt), clock_timestamp(), claim.lease_until,
            reader.keep_history is not null, postbus_data.has_saved(reader.id, batch.seqs)
        from unnest(messages) as m;
        claim.messages := claim.messages || messages;
    end loop;
    if last_n is null then
        return claim;
    end if;
    delete from postbus_data.due as d
    where d.consumer_id = reader.id
        and d.epoch = reader.epoch
        and d.lane = lane
        and d.n > place.read_to_n
        and d.n <= last_n;
    delete from postbus_data.redelivery_position as p
    where p.consumer_id = reader.id
        and p.epoch = reader.epoch
        and p.lane = lane
        and p.read_to_n = place.read_to_n;
    insert into postbus_data.redelivery_position (consumer_id, epoch, read_to_n, pending_bound, lane)
    values (reader.id, reader.epoch, last_n, bound + coalesce(cardinality(claim.messages), 0), lane);
    return claim;
end
$$;

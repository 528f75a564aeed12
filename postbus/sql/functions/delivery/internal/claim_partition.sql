create or replace function postbus_data.claim_partition(
    reader postbus_data.consumer,
    claim postbus_data.receive_state,
    partition integer,
    wanted integer
)
returns postbus_data.receive_state
language plpgsql
volatile
as $$
/*
Find the messages of one partition that may be leased, for the segment's own function; claim.wanted is null when there are none.
Messages that only another way can lease (failed ones, or those where two segments overlap) are leased here: claim.messages.
Hot.

Touches  as claim_by_key, claim_by_partition and claim_overlap, if it calls them.
Locks    the partition's mutex, which is the same for all levels; the claim is busy when another session holds it.

Mutex, horizon and rows are separate statements, each with a younger snapshot than the one before.
*/
#variable_conflict use_variable
declare
    place postbus_data.position;
    slot postbus_data.position;
    newest integer;
    lane integer := partition / 100000000 * 100000000;
begin
    -- The mutex, and what is in flight, are those of the partition in all levels.
    partition := partition - lane;
    claim.messages := null;
    claim.wanted := null;
    claim.busy := not pg_try_advisory_xact_lock(postbus_data.consumer_lock_class(reader.id), partition);
    if claim.busy then
        return claim;
    end if;
    place := (
        select p
        from postbus_data.position as p
        where p.consumer_id = reader.id
            and p.epoch = reader.epoch
            and p.partition = lane + partition
        order by p.read_to_seq desc
        limit 1
    );
    if lane > 0 then
        -- What is in flight is recorded with the default level, see save_slot.
        slot := postbus_data.position_of(reader, partition);
        if slot.read_to_seq = 9223372036854775807 then
            return claim;
        end if;
        if place.read_to_seq is null then
            -- The horizon was read before.
            place := postbus_data.first_position(
                reader, lane + partition, greatest(reader.start_after, least(postbus_data.lane_start(reader.stream_id, lane), claim.horizon))
            );
        end if;
        place.leases := slot.leases;
        place.pending_bound := slot.pending_bound;
        place.pending_since := slot.pending_since;
    end if;
    if place.read_to_seq is null then
        place := postbus_data.first_position(reader, partition, reader.start_after);
    elsif place.read_to_seq = 9223372036854775807 then
        -- The layout was changed meanwhile.
        return claim;
    elsif reader.ordering = 'none' and place.leases is not null then
        -- It has become a consumer by channel meanwhile.
        return claim;
    end if;

    if place.pending_bound + wanted > claim.quota then
        select r.pending_bound, r.pending_since into place.pending_bound, place.pending_since
        from postbus_data.count_in_flight(
            reader.id, reader.epoch, partition, postbus_data.layout_base(claim.layout),
            case when reader.ordering <> 'none' then coalesce(place.leases, '{}') end, place.pending_since
        ) as r;
        wanted := least(wanted, claim.quota - place.pending_bound);
        if wanted <= 0 then
            return claim;
        end if;
    end if;
    if reader.ordering <> 'none' then
        claim.place := place;
        if reader.ordering = 'key' then
            claim := postbus_data.claim_by_key(reader, claim, wanted);
        else
            claim := postbus_data.claim_by_partition(reader, claim, wanted);
        end if;
        if claim.place is null then
            return claim;
        end if;
        place := claim.place;
    end if;

    -- Reuse the horizon of an earlier claim while it probably leaves enough to read.
    if claim.horizon is null and place.horizon - place.read_to_seq < wanted * postbus_data.layout_count(claim.layout) then
        claim.horizon := postbus_data.horizon_of(reader.stream_id);
    end if;
    place.horizon := greatest(place.horizon, claim.horizon);
    claim.after_seq := greatest(place.read_to_seq, claim.start_seq - 1);
    if claim.start_seq - 1 > place.read_to_seq then
        place.missed_count := place.missed_count + postbus_data.missed_between(
            reader.stream_id, lane + partition, place.read_to_seq, claim.start_seq, postbus_data.layout_count(claim.layout)
        );
    end if;
    if place.horizon <= claim.after_seq then
        return claim;
    end if;
    -- Read after the horizon: messages below it are in this segment or an older one.
    newest := postbus_data.layout_segment(pg_sequence_last_value(to_regclass('postbus_data.layout_' || reader.stream_id)));
    claim.segment := newest;
    claim.to_seq := place.horizon;
    claim.wanted := wanted;
    if place.segment <> newest then
        return postbus_data.claim_older(reader, claim, place, newest);
    end if;
    claim.place := place;
    return claim;
end
$$;

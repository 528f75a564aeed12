create or replace function postbus_data.claim_older(
    reader postbus_data.consumer,
    claim postbus_data.receive_state,
    place postbus_data.position,
    newest integer
)
returns postbus_data.receive_state
language plpgsql
volatile
as $$
/*
Find the segment with the next messages of a partition, when that may not be the newest segment, and up to which seq it is the
only one.

Its caller holds the partition's mutex. newest is the segment that the register named after claim.to_seq was known.
Touches  as claim_overlap, if two segments overlap here.
*/
declare
    next_starts_after bigint;
begin
    claim.segment := coalesce(
        (
            select g.number
            from postbus_data.segment as g
            where g.stream_id = reader.stream_id
                and g.last_seq > claim.after_seq
            order by g.last_seq, g.number
            limit 1
        ),
        (
            select g.number
            from postbus_data.segment as g
            where g.stream_id = reader.stream_id
                and g.last_seq is null
            order by g.number
            limit 1
        )
    );
    place.segment := claim.segment;
    claim.place := place;
    if claim.segment = newest then
        return claim;
    end if;
    -- Nearly always the next number; an older one may have been dropped.
    select g.after_seq into next_starts_after
    from postbus_data.segment as g
    where g.stream_id = reader.stream_id
        and g.number > claim.segment
    order by g.number
    limit 1;
    if next_starts_after <= claim.after_seq then
        return postbus_data.claim_overlap(reader, claim);
    end if;
    claim.to_seq := least(claim.to_seq, next_starts_after);
    return claim;
end
$$;

create or replace function postbus_data.claim_overlap(reader postbus_data.consumer, claim postbus_data.claim)
returns postbus_data.claim
language plpgsql
volatile
as $$
/*
Lease the next messages of a partition where two segments overlap: publishers that were under way when the log rolled wrote to the
older one, others to the newer.

Its caller holds the partition's mutex.
Touches  as take.
*/
declare
    place postbus_data.position := claim.place;
    prefix text;
begin
    claim.messages := postbus_data.fetch_messages(reader.stream_id, place.partition, claim.after_seq, claim.to_seq, claim.wanted);
    if claim.messages is not null then
        prefix := postbus_data.take(reader, claim, array(select m.seq from unnest(claim.messages) as m));
        claim.messages := array(
            select row(prefix || m.seq, 1, m.seq, m.partition, m.key, m.data, m.bytes, m.headers, m.published_at)::postbus.delivery
            from unnest(claim.messages) as m
        );
    end if;
    claim.wanted := null;
    return claim;
end
$$;

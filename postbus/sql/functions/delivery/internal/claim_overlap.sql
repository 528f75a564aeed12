create or replace function postbus_data.claim_overlap(reader postbus_data.consumer, claim postbus_data.receive_state)
returns postbus_data.receive_state
language plpgsql
volatile
as $$
/*
Lease the next messages of a partition where two segments overlap: publishers that were active when the log rolled wrote to the
older segment, others to the newer one.

Its caller holds the partition's mutex.
Touches  as choose_messages and lease_messages.
*/
declare
    place postbus_data.position := claim.place;
    seqs bigint[];
    keys text[];
    found_count integer;
    last_seq bigint;
    picked postbus_data.chosen_messages;
    prefix text;
    superseded bigint[];
begin
    claim.messages := postbus_data.fetch_messages(
        reader.stream_id, place.partition, claim.after_seq, claim.to_seq, coalesce(claim.scan, claim.wanted)
    );
    superseded := postbus_data.superseded(reader.stream_id, claim.messages);
    select
        array_agg(m.seq) filter (where postbus_data.passes(reader, m) and m.seq <> all (superseded)),
        array_agg(m.key) filter (where postbus_data.passes(reader, m) and m.seq <> all (superseded)),
        max(m.seq),
        count(*)
    into seqs, keys, last_seq, found_count
    from unnest(claim.messages) as m;
    if found_count < coalesce(claim.scan, claim.wanted) then
        last_seq := claim.to_seq;
    end if;
    picked := postbus_data.choose_messages(reader, claim, seqs, keys, null, last_seq);
    claim.place := picked.place;
    if picked.seqs is not null then
        prefix := postbus_data.lease_messages(reader, claim, picked.seqs, picked.keys, picked.last_seq);
    elsif picked.last_seq > place.read_to_seq then
        perform postbus_data.advance_position(picked.place, picked.last_seq);
    end if;
    claim.messages := nullif(
        array(
            select row(prefix || '-' || m.seq, 1, m.seq, m.partition, m.key, m.data, m.bytes, m.headers, m.published_at, 0, null, null, null)::postbus.delivery
            from unnest(claim.messages) as m
            where m.seq = any (picked.seqs)
            order by m.seq
        ),
        '{}'
    );
    claim.wanted := null;
    return claim;
end
$$;

create or replace function postbus_data.choose_fresh(reader postbus_data.consumer, claim postbus_data.channel_claim, full_at integer)
returns postbus_data.channel_claim
language plpgsql
volatile
as $$
/*
Choose new messages of a partition, of channels that have no turn waiting, in the order of their seqs. A channel that has more than it may have now gets a
turn, so that the position can pass over it.

full_at  how many messages may be in flight or chosen, in all.

Its caller holds the partition's mutex, and writes the position.
Touches  turn, dead_letter, channel_pace (insert).
*/
#variable_conflict use_variable
declare
    place postbus_data.position := claim.place;
    last_turn bigint;
    scan integer := full_at - cardinality(claim.in_flight) + 7;
    found_here record;
    looked postbus_data.fresh_messages;
begin
    while cardinality(claim.in_flight) < full_at and claim.scan_left > 0 loop
        if place.read_to_seq >= place.horizon then
            if claim.horizon is null
                and place.horizon < pg_sequence_last_value(to_regclass('postbus_data.seq_' || reader.stream_id))
            then
                claim.horizon := postbus_data.horizon_of(reader.stream_id);
            end if;
            place.horizon := greatest(place.horizon, claim.horizon);
            exit when place.read_to_seq >= place.horizon;
        end if;
        select l.looked as messages, l.segment
        into found_here
        from postbus_data.look_at_channels(reader, claim, place.read_to_seq, place.horizon, scan, full_at - cardinality(claim.in_flight), null) as l;
        looked := found_here.messages;
        if looked.seqs is not null then
            claim := postbus_data.note_chosen(reader, claim, looked.seqs, looked.channels, found_here.segment);
        end if;
        if looked.late is not null then
            last_turn := (claim.state).last_turn;
            insert into postbus_data.turn (consumer_id, epoch, partition, channel, n, after_seq)
            select place.consumer_id, place.epoch, place.partition, u.channel, last_turn + u.place, u.after_seq
            from unnest(looked.late, looked.late_after) with ordinality as u (channel, after_seq, place);
            claim.state.last_turn := last_turn + cardinality(looked.late);
        end if;
        place := postbus_data.count_expired(reader, place, looked.expired);
        place.read_to_seq := looked.last_seq;
        claim.is_changed := true;
        claim.scan_left := claim.scan_left - looked.scanned - 16;
        scan := least(4 * scan, 16384);
    end loop;
    claim.place := place;
    return claim;
end
$$;

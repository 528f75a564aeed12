create or replace function postbus_data.begin_channel_claim(reader postbus_data.consumer, claim postbus_data.receive_state, partition integer)
returns postbus_data.channel_claim
language plpgsql
volatile
as $$
/*
The position of a partition, and what of it is in flight.

Its caller holds the partition's mutex. Each lease of the partition is listed in its state, so none is overlooked: a lease ends by itself, but begins only
under the mutex.
*/
#variable_conflict use_variable
declare
    here postbus_data.channel_claim;
    place postbus_data.position := postbus_data.position_of(reader, partition);
    leases bigint[];
begin
    if place.read_to_seq = 9223372036854775807 then
        return here;
    end if;
    here.began := place;
    here.state := postbus_data.channel_position_of(reader, partition);
    place.segment := 0;
    place.leases := '{}';
    if claim.start_seq - 1 > place.read_to_seq then
        place.missed_count := place.missed_count + postbus_data.missed_between(
            reader.stream_id, partition, place.read_to_seq, claim.start_seq, postbus_data.layout_count(claim.layout)
        );
        place.read_to_seq := claim.start_seq - 1;
    end if;
    here.in_flight := '{}';
    here.channel_tokens := (select s.channel_tokens from postbus_data.stream as s where s.id = reader.stream_id);
    here.has_limits := exists (select from postbus_data.channel as c where c.stream_id = reader.stream_id);
    if (here.state).leases <> '{}' then
        select
            array_agg(distinct l.token),
            array_agg(postbus_data.channel_of(m.key, here.channel_tokens)) filter (where not exists (
                select from postbus_data.settled as s where s.token = l.token and s.seq = m.seq
            ))
        into leases, here.in_flight
        from postbus_data.lease as l
        cross join lateral unnest(l.seqs, l.keys) as m (seq, key)
        where l.token = any ((here.state).leases);
        here.in_flight := coalesce(here.in_flight, '{}');
    end if;
    here.state.leases := coalesce(leases, '{}');
    here.place := place;
    here.data_type := claim.data_type;
    here.start_seq := claim.start_seq;
    here.now_at := clock_timestamp();
    here.horizon := claim.horizon;
    here.scan_left := 65536;
    here.is_changed := false;
    return here;
end
$$;

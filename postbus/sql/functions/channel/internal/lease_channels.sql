create or replace function postbus_data.lease_channels(
    reader postbus_data.consumer,
    claim postbus_data.receive_state,
    here postbus_data.channel_claim
)
returns postbus_data.receive_state
language plpgsql
volatile
as $$
/*
Lease the messages that a claim by channel has chosen, those that failed before first, and write the position.

Returns  the claim, with the batch.
Touches  lease, channel_position, position (insert; delete of the last one), dead_letter (insert).
*/
#variable_conflict use_variable
declare
    token bigint := postbus_data.new_token();
    place postbus_data.position := here.place;
    batch postbus_data.batch;
    messages postbus.delivery[];
begin
    if not here.is_changed then
        return claim;
    end if;
    if here.retried is null and here.segment is not null then
        execute 'select b.* from postbus_data.fetch_channels_' || reader.stream_id || '_' || here.segment || '($1, $2) as b'
        into batch
        using place.partition, here.seqs;
    elsif here.retried is not null or here.seqs is not null then
        if here.retried is not null then
            messages := postbus_data.fetch_named(reader.stream_id, here.data_type, place.partition, here.retried, here.attempts, token, live_only => true);
            perform postbus_data.add_dead_letters_without_message(reader, place.partition, here.retried, here.attempts, messages);
        end if;
        if here.seqs is not null then
            messages := messages || postbus_data.fetch_named(
                reader.stream_id, here.data_type, place.partition, here.seqs, array_fill(1, array[cardinality(here.seqs)]), token
            );
        end if;
        select array_agg(m.seq), array_agg(m.attempt), array_agg(m.key), array_agg(m.data), array_agg(m.bytes), array_agg(m.headers), array_agg(m.published_at)
        into batch.seqs, batch.attempts, batch.keys, batch.data, batch.bytes, batch.headers, batch.published_at
        from unnest(messages) as m;
        batch.partition := place.partition;
        if here.data_type = 'bytes' then
            batch.data := null;
        else
            batch.bytes := null;
        end if;
        batch.attempts := case when here.retried is not null then batch.attempts end;
    end if;
    if batch.seqs is not null then
        batch.lease := lpad(to_hex(token), 16, '0');
        insert into postbus_data.lease (
            token, consumer_id, epoch, partition, seqs, keys, attempts, received_at, deadline, has_history, has_saved
        )
        values (
            token, reader.id, reader.epoch, place.partition, batch.seqs, batch.keys, batch.attempts, clock_timestamp(), claim.lease_until,
            reader.keep_history is not null, here.retried is not null and postbus_data.has_saved(reader.id, batch.seqs)
        );
        here.state.leases := (here.state).leases || token;
    end if;
    if place is distinct from here.began then
        place.pending_bound := cardinality(here.in_flight);
        delete from postbus_data.position as p
        where p.consumer_id = place.consumer_id
            and p.epoch = place.epoch
            and p.partition = place.partition
            and p.read_to_seq = (here.began).read_to_seq;
        insert into postbus_data.position select place.*;
    end if;
    delete from postbus_data.channel_position as p
    where p.consumer_id = place.consumer_id
        and p.epoch = place.epoch
        and p.partition = place.partition
        and p.n = (here.state).n;
    here.state.n := (here.state).n + 1;
    insert into postbus_data.channel_position select (here.state).*;
    claim.batch := batch;
    return claim;
end
$$;

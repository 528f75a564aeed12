create or replace function postbus_data.claim_channel_partition(
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
Lease messages of one partition for a consumer by channel.

New channels and those that wait for their turn share a receive; where it takes one message only, they alternate. A consumer that is not fair serves the
channels that a limit had held, and then the others in the order of their messages.

Locks    the partition's mutex; the claim is busy when another session holds it. Everything that it decides on is read in later statements, with younger
         snapshots: what is in flight, the limits and the turns.
Returns  the claim, with its batch; without one if there is nothing.
*/
#variable_conflict use_variable
declare
    here postbus_data.channel_claim;
    full_at integer;
    for_fresh integer;
    has_turns boolean;
begin
    claim.batch := null;
    claim.busy := not pg_try_advisory_xact_lock(postbus_data.consumer_lock_class(reader.id), partition);
    if claim.busy then
        return claim;
    end if;
    here := postbus_data.begin_channel_claim(reader, claim, partition);
    wanted := least(wanted, claim.quota - cardinality(here.in_flight), (select 900000000 / s.max_message_bytes from postbus_data.stream as s where s.id = reader.stream_id));
    if wanted <= 0 or here.place is null then
        return claim;
    end if;
    here.quantum := case when reader.fair then greatest(1, wanted / 4) end;
    here := postbus_data.wake_channels(reader, here);
    full_at := cardinality(here.in_flight) + wanted;
    has_turns := exists (
        select
        from postbus_data.turn as t
        where t.consumer_id + 0 = reader.id
            and t.epoch = reader.epoch
            and t.partition = partition
            and t.ready_at is null
            and t.n > (here.state).turned_to
    );
    for_fresh := case
        when not reader.fair then 0
        when not has_turns then wanted
        when wanted = 1 then case when (here.state).turns_first then 0 else 1 end
        else (wanted + 1) / 2
    end;
    if for_fresh > 0 then
        here := postbus_data.choose_fresh(reader, here, cardinality(here.in_flight) + for_fresh);
    end if;
    if has_turns and wanted = 1 then
        here.state.turns_first := here.seqs is not null;
    end if;
    here := postbus_data.choose_turns(reader, here, full_at);
    -- What the turns have left over.
    here := postbus_data.choose_fresh(reader, here, full_at);
    claim.horizon := here.horizon;
    return postbus_data.lease_channels(reader, claim, here);
end
$$;

create or replace function postbus_data.take_turn(
    reader postbus_data.consumer,
    claim postbus_data.channel_claim,
    turn postbus_data.turn,
    wanted integer
)
returns postbus_data.channel_claim
language plpgsql
volatile
as $$
/*
One turn of a channel: retries that are due for at most half of it, then its next messages.

turn    the row of the turn, which the caller has deleted.
wanted  how many messages there is room for in the receive: if that ends the turn early, the channel goes on first the next time.

Touches  turn (insert), due (delete), channel_pace, dead_letter (insert).
*/
#variable_conflict use_variable
declare
    here postbus_data.channel_room := postbus_data.channel_room(
        reader, turn.channel, claim.in_flight, claim.quantum, claim.has_limits, claim.now_at
    );
    -- Null for a consumer that is not fair: as many as there are.
    quantum integer := coalesce(turn.quantum_left, here.quantum);
    allowed integer := least(wanted, here.room, quantum);
    served integer := cardinality(claim.in_flight);
    has_retries boolean;
    is_done boolean := true;
    found_here record;
    looked postbus_data.fresh_messages;
    look integer := 0;
begin
    if here.room > 0 then
        claim := postbus_data.choose_retries(reader, claim, turn.channel, (allowed + 1) / 2);
        while turn.after_seq < (claim.place).read_to_seq loop
            look := look + 1;
            is_done := false;
            exit when served + allowed <= cardinality(claim.in_flight) or look > 16;
            select l.looked as messages, l.segment
            into found_here
            from postbus_data.look_at_channels(
                reader, claim, turn.after_seq, (claim.place).read_to_seq, 4 * allowed + 60, served + allowed - cardinality(claim.in_flight), turn.channel
            ) as l;
            looked := found_here.messages;
            if looked.seqs is not null then
                claim := postbus_data.note_chosen(
                    reader, claim, looked.seqs, array_fill(turn.channel, array[cardinality(looked.seqs)]), found_here.segment
                );
            end if;
            claim.place := postbus_data.count_expired(reader, claim.place, looked.expired);
            turn.after_seq := looked.last_seq;
            is_done := looked.is_end;
            exit when is_done;
        end loop;
        if served + allowed > cardinality(claim.in_flight) then
            claim := postbus_data.choose_retries(reader, claim, turn.channel, served + allowed - cardinality(claim.in_flight));
        end if;
    else
        is_done := false;
    end if;
    has_retries := exists (
        select
        from postbus_data.due as d
        where d.consumer_id + 0 = reader.id
            and d.epoch = reader.epoch
            and d.channel = turn.channel
    );
    if is_done and not has_retries then
        return claim;
    end if;
    served := cardinality(claim.in_flight) - served;
    if here.room > 0 and served = wanted and served < quantum and served < here.room then
        -- The receive is full. Its turn goes on.
        turn.quantum_left := quantum - served;
        claim.state.turned_to := turn.n - 1;
    else
        turn.quantum_left := null;
        claim.state.last_turn := (claim.state).last_turn + 1;
        turn.n := (claim.state).last_turn;
        if here.room <= served then
            here := postbus_data.channel_room(reader, turn.channel, claim.in_flight, claim.quantum, claim.has_limits, claim.now_at);
        end if;
    end if;
    turn.ready_at := greatest(here.ready_at, case when here.limited_by = 'rate' then (claim.state).rested_to + interval '1 microsecond' end);
    turn.limited_by := here.limited_by;
    turn.max_concurrency := here.max_concurrency;
    insert into postbus_data.turn select turn.*;
    return claim;
end
$$;

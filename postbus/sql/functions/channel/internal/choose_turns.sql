create or replace function postbus_data.choose_turns(reader postbus_data.consumer, claim postbus_data.channel_claim, full_at integer)
returns postbus_data.channel_claim
language plpgsql
volatile
as $$
/*
Choose messages of the channels that wait for their turn, in the order of their turns, as many of each as its quantum and its limits leave. A channel that has
more goes to the end; one that a limit holds rests.

full_at  how many messages may be in flight or chosen, in all.

Its caller holds the partition's mutex, and writes the position.
Touches  turn (delete, insert); as take_turn.
*/
#variable_conflict use_variable
declare
    next_turn postbus_data.turn;
begin
    while cardinality(claim.in_flight) < full_at loop
        select t.*
        into next_turn
        from postbus_data.turn as t
        where t.consumer_id + 0 = reader.id
            and t.epoch = reader.epoch
            and t.partition = (claim.place).partition
            and t.ready_at is null
            and t.n > (claim.state).turned_to
        order by t.n
        limit 1;
        exit when not found;
        delete from postbus_data.turn as t
        where t.consumer_id = next_turn.consumer_id
            and t.epoch = next_turn.epoch
            and t.partition = next_turn.partition
            and t.channel = next_turn.channel
            and t.n = next_turn.n;
        claim.state.turned_to := next_turn.n;
        claim.is_changed := true;
        claim := postbus_data.take_turn(reader, claim, next_turn, full_at - cardinality(claim.in_flight));
    end loop;
    return claim;
end
$$;

create or replace function postbus_data.give_turn(state postbus_data.channel_position, resting postbus_data.turn)
returns postbus_data.channel_position
language plpgsql
volatile
as $$
/*
Let a channel that has rested take its turn behind those that wait.

Its caller holds the partition's mutex, and writes the state.
Touches  turn (delete, insert).
*/
begin
    delete from postbus_data.turn as t
    where t.consumer_id = resting.consumer_id
        and t.epoch = resting.epoch
        and t.partition = resting.partition
        and t.channel = resting.channel
        and t.n = resting.n;
    state.last_turn := state.last_turn + 1;
    insert into postbus_data.turn (consumer_id, epoch, partition, channel, n, after_seq)
    values (resting.consumer_id, resting.epoch, resting.partition, resting.channel, state.last_turn, resting.after_seq);
    return state;
end
$$;

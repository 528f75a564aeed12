create or replace function postbus_data.consumer_lock(purpose text)
returns integer
language sql
immutable parallel safe
as $$
/*
The key of one of a consumer's mutexes, besides those of its partitions, whose keys are the partitions' numbers. See consumer_lock_class.

redeliver      who reads the redelivery log
sweep          who sweeps
count          who may go near max_ack_pending
share out      who shares out the partitions of a group
change layout  who waits for all of the old partitions, to go on to new ones
*/
    select case purpose when 'redeliver' then -1 when 'sweep' then -2 when 'count' then -3 when 'share out' then -4 when 'change layout' then -6 end
$$;

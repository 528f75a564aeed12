create or replace function postbus_data.consumer_lock(purpose text)
returns integer
language sql
immutable parallel safe
as $$
/*
The second key of a consumer's mutexes other than those of its partitions, whose keys are the partition numbers. See
consumer_lock_class.

redeliver      held while reading the redelivery log
sweep          held while sweeping
count          held while leasing messages close to max_ack_pending
share out      held while sharing out the partitions of a group
change layout  held while waiting for all old partitions, to move to the new ones
note urgent    held while noting that no urgent messages are left
push           held while changing what is known of the consumer's endpoint
*/
    select case purpose when 'redeliver' then -1 when 'sweep' then -2 when 'count' then -3 when 'share out' then -4 when 'change layout' then -6 when 'note urgent' then -7 when 'push' then -8 end
$$;

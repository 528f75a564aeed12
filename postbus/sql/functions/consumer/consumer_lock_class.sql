create or replace function postbus_data.consumer_lock_class(consumer_id integer)
returns integer
language sql
immutable parallel safe
as $$
/*
The class of a consumer's mutexes, two-key advisory locks. The second key is a partition's number, or
    -1  who reads the redelivery log
    -2  who sweeps
    -3  who may go near max_ack_pending
    -4  who shares out the partitions of a group
They lie above the classes of publishers' locks (functions/horizon/publisher_lock_class.sql); class 1610612736 itself is maintenance.
*/
    select 1610612736 + consumer_id
$$;

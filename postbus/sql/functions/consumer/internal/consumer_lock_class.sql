create or replace function postbus_data.consumer_lock_class(consumer_id integer)
returns integer
language sql
immutable parallel safe
as $$
/*
The class of a consumer's mutexes, two-key advisory locks. The second key is the number of a partition, or one of those that consumer_lock names.

They lie above the classes of publishers' locks (functions/horizon/internal/publisher_lock_class.sql). The class of a consumer 0 is that of maintenance: the second key is a
stream's id, or for its schedule the negated id.
*/
    select 1610612736 + consumer_id
$$;

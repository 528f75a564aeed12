create or replace function postbus_data.consumer_lock_class(consumer_id integer)
returns integer
language sql
immutable parallel safe
as $$
/*
The class of a consumer's mutexes, which are two-key advisory locks. The second key is a partition number, or one of those in
consumer_lock.

They lie above the classes of publishers' locks (functions/horizon/internal/publisher_lock_class.sql). Class 0 is for maintenance: its
second key is a stream's id, or the negated id for the stream's schedule.
*/
    select 1610612736 + consumer_id
$$;

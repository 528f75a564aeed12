create or replace function postbus_data.publisher_lock_class(stream_id integer)
returns integer
language sql
immutable parallel safe
as $$
/*
The class of the advisory locks with which publishers of a stream hold its horizon.

They are two-key locks of class 2^30 + stream id. Mutexes use classes from 2^30 + 2^29 up: a mutex that looked like a
publisher's lock would freeze the horizon. Applications rarely use two-key advisory locks with classes that high.
*/
    select 1073741824 + stream_id
$$;

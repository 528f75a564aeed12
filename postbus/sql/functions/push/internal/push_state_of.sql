create or replace function postbus_data.push_state_of(consumer_id integer)
returns postbus_data.push_state
language sql
stable
as $$
/* How an endpoint does: the newest row; null if nothing is known. */
    select s
    from postbus_data.push_state as s
    where s.consumer_id = push_state_of.consumer_id
    order by s.n desc
    limit 1
$$;

create or replace function postbus_data.last_use_of(reader postbus_data.consumer)
returns postbus_data.consumer_use
language sql
volatile
as $$
/* When a consumer was last used; null if unknown. */
    select u
    from postbus_data.consumer_use as u
    where u.consumer_id = reader.id
        and u.epoch = reader.epoch
    order by u.used_at desc
    limit 1
$$;

create or replace function postbus_data.has_due(reader postbus_data.consumer)
returns boolean
language sql
volatile
as $$
/* Whether a consumer's redelivery log has something to give. */
    select exists (
        select
        from postbus_data.due as d
        where d.consumer_id = reader.id
            and d.epoch = reader.epoch
            and d.n > (postbus_data.due_position(reader)).hi
    )
$$;

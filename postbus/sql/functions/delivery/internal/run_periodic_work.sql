create or replace function postbus_data.run_periodic_work(reader postbus_data.consumer)
returns boolean
language plpgsql
volatile
as $$
/*
What receiving does besides, now and then: remember that the consumer is used, and sweep.

Returns  whether something was swept up, which claim_batches gives out.
Touches  as note_use and sweep_consumer.
*/
begin
    if reader.expire_after is not null then
        perform postbus_data.note_use(reader);
    end if;
    return not reader.is_group and postbus_data.sweep_now_and_then(reader);
end
$$;

create or replace function postbus_data.run_periodic_work(reader postbus_data.consumer)
returns boolean
language plpgsql
volatile
as $$
/*
The periodic work of a receive: record that the consumer is in use, and sweep.

Returns  whether the sweep made messages available, which claim_batches then leases.
Touches  as note_use and sweep_consumer.
*/
begin
    if reader.expire_after is not null then
        perform postbus_data.note_use(reader);
    end if;
    return not reader.is_group and postbus_data.sweep_now_and_then(reader);
end
$$;

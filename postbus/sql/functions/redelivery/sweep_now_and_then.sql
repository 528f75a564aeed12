create or replace function postbus_data.sweep_now_and_then(reader postbus_data.consumer)
returns boolean
language plpgsql
volatile
as $$
/*
Sweep a consumer that was not swept for a second, so that a stream which never runs dry does not keep failed messages waiting.

Returns  whether it did.
*/
begin
    if (postbus_data.sweep_mark(reader)).hi > extract(epoch from clock_timestamp()) * 1000000 - 1000000 then
        return false;
    end if;
    return postbus_data.sweep_consumer(reader) > 0;
end
$$;

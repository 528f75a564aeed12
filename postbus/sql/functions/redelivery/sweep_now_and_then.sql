create or replace function postbus_data.sweep_now_and_then(reader postbus_data.consumer)
returns boolean
language plpgsql
volatile
as $$
/*
Sweep a consumer that was not swept for a second, so that a stream which never runs dry does not keep failed messages waiting.

Returns  whether it did.
*/
declare
    now_at numeric := extract(epoch from clock_timestamp()) * 1000000;
begin
    -- A mark may lie in the future, when the clock was set back.
    if (postbus_data.sweep_mark(reader)).read_to_seq between now_at - 1000000 and now_at + 1000000 then
        return false;
    end if;
    return postbus_data.sweep_consumer(reader) > 0;
end
$$;

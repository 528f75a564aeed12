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
    now_at timestamptz := clock_timestamp();
begin
    -- It may have been swept in the future, when the clock was set back.
    if (postbus_data.sweep_state_of(reader)).swept_to between now_at - interval '1 second' and now_at + interval '1 second' then
        return false;
    end if;
    return postbus_data.sweep_consumer(reader) > 0;
end
$$;

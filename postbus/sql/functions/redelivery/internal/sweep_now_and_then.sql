create or replace function postbus_data.sweep_now_and_then(reader postbus_data.consumer)
returns boolean
language plpgsql
volatile
as $$
/*
Sweep a consumer that was not swept for a second, so that failed messages do not wait while a stream never runs dry.

Returns  whether it swept.
*/
declare
    now_at timestamptz := clock_timestamp();
begin
    -- If the clock was set back, the last sweep may be in the future.
    if (postbus_data.sweep_state_of(reader)).swept_to between now_at - interval '1 second' and now_at + interval '1 second' then
        return false;
    end if;
    return postbus_data.sweep_consumer(reader) > 0;
end
$$;

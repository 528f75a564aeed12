create or replace function postbus_data.take_push_turns(consumer_id integer, max_rate double precision, wanted integer)
returns table (granted integer, wait_seconds double precision)
language plpgsql
volatile
as $$
/*
Take turns to send requests to an endpoint with a limited rate, which all processes share. Up to a second's worth may be taken at once.

Returns  how many requests may be sent now; if none, after how many seconds one may.
Touches  push_state (insert, delete).
Locks    the endpoint's mutex.
*/
declare
    state postbus_data.push_state := postbus_data.lock_push_state(consumer_id);
    now_at timestamptz := clock_timestamp();
    ahead double precision;
begin
    -- The next turn, in turns from now; a burst may be so many turns ahead.
    ahead := greatest(coalesce(extract(epoch from state.next_turn_at - now_at) * max_rate, 0), 0);
    granted := least(wanted, greatest(floor(greatest(max_rate, 1) - ahead), 0));
    if granted = 0 then
        wait_seconds := (ahead - greatest(max_rate, 1) + 1) / max_rate;
        return next;
        return;
    end if;
    wait_seconds := 0;
    state.next_turn_at := now_at + make_interval(secs => (ahead + granted) / max_rate);
    perform postbus_data.store_push_state(state);
    return next;
end
$$;

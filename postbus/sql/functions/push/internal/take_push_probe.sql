create or replace function postbus_data.take_push_probe(consumer_id integer, give_back boolean default false)
returns boolean
language plpgsql
volatile
as $$
/*
Take the one request that an endpoint gets after a rest: of all processes, one at a time sends it, and then reports how it went.

give_back  there was nothing to send: another process may take it.

Returns  whether the caller may send.
Touches  push_state (insert, delete).
Locks    the endpoint's mutex.
*/
declare
    state postbus_data.push_state := postbus_data.lock_push_state(consumer_id);
    timeout interval := (select p.timeout from postbus_data.push as p where p.consumer_id = take_push_probe.consumer_id);
begin
    if give_back then
        state.probe_until := null;
    elsif (state.rests_until <= clock_timestamp()) is not true or state.probe_until > clock_timestamp() or timeout is null then
        return false;
    else
        state.probe_until := clock_timestamp() + timeout + interval '15 seconds';
    end if;
    perform postbus_data.store_push_state(state);
    return true;
end
$$;

create or replace function postbus_data.store_push_state(state postbus_data.push_state)
returns void
language plpgsql
volatile
as $$
/*
Store how an endpoint does, in place of what was read by lock_push_state; nothing if the endpoint was removed meanwhile.

Touches  push_state (insert, delete).
*/
begin
    -- A locked row cannot be removed before the new one refers to it.
    perform from postbus_data.push as p where p.consumer_id = state.consumer_id for key share;
    if not found then
        return;
    end if;
    delete from postbus_data.push_state as s where s.consumer_id = state.consumer_id and s.n = state.n;
    state.n := state.n + 1;
    insert into postbus_data.push_state select (state).*;
end
$$;

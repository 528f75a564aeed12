create or replace function postbus_data.lock_push_state(consumer_id integer)
returns postbus_data.push_state
language plpgsql
volatile
as $$
/*
How an endpoint does, for a change of it: read after its mutex was taken, which is held until the transaction ends. Row n 0 if nothing is
known.
*/
declare
    state postbus_data.push_state;
begin
    perform pg_advisory_xact_lock(postbus_data.consumer_lock_class(consumer_id), postbus_data.consumer_lock('push'));
    state := postbus_data.push_state_of(consumer_id);
    if state.n is null then
        state.consumer_id := consumer_id;
        state.n := 0;
        state.rest_count := 0;
        state.window_requests := 0;
        state.window_failures := 0;
        state.failed_seqs := '{}';
        state.unreachable_count := 0;
    end if;
    return state;
end
$$;

create or replace function postbus.test_push(stream text, consumer text)
returns bigint
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Ask for a test: whoever sends to the endpoint of a consumer sends it one signed message of type postbus.test, also while it rests or is
paused. push_attempts shows how it went.

Returns  the test's id.
Raises   PB404 for an unknown stream or consumer, or one without an endpoint; PB409 if ten tests wait already: nobody sends.
Touches  push_test (insert).
*/
#variable_conflict use_variable
declare
    endpoint postbus_data.push := postbus_data.push_of(stream, consumer);
    new_id bigint;
begin
    if (select count(*) from postbus_data.push_test as t where t.consumer_id = endpoint.consumer_id) >= 10 then
        raise exception using
            errcode = 'PB409',
            message = format('ten tests of consumer "%s" of stream "%s" wait already', consumer, stream),
            hint = 'nobody sends: run a server (postbus up) or postbus push run';
    end if;
    insert into postbus_data.push_test (consumer_id) values (endpoint.consumer_id) returning id into new_id;
    return new_id;
end
$$;

create or replace function postbus_data.take_push_tests(consumer_id integer)
returns setof bigint
language sql
volatile
as $$
/*
Take the tests that were asked for: of all processes, one sends each.

Touches  push_test (delete).
*/
    delete from postbus_data.push_test as t
    where t.consumer_id = take_push_tests.consumer_id
        and t.id in (
            select o.id from postbus_data.push_test as o where o.consumer_id = take_push_tests.consumer_id for update skip locked
        )
    returning t.id
$$;

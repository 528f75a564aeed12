create or replace function postbus_data.new_token()
returns bigint
language sql
volatile
as $$
/*
A lease's name: random, so that a lease that a crash took back is never taken for another (a number from a sequence could be given again).
*/
    select (floor(random() * 4294967296)::bigint << 31) # floor(random() * 4294967296)::bigint
$$;

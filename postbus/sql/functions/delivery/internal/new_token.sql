create or replace function postbus_data.new_token()
returns bigint
language sql
volatile
as $$
/*
A lease's name: random, so that a lease that a crash took back is never taken for another (a number from a sequence could be given again). From a source that
nobody can seed, unlike random(): who could repeat tokens could finish deliveries of others.
*/
    select uuid_hash_extended(gen_random_uuid(), 0)
$$;

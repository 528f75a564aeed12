create or replace function postbus_data.new_token()
returns bigint
language sql
volatile
as $$
/*
A token for a lease. It is random, so that a lease lost in a crash is never mistaken for another one; a number from a sequence
could be given out again. Its source cannot be seeded, unlike random(): whoever could predict tokens could settle other clients'
deliveries.
*/
    select uuid_hash_extended(gen_random_uuid(), 0)
$$;

create or replace function postbus_data.publisher_lock_key(seq bigint)
returns integer
language sql
immutable parallel safe
as $$
/*
The low 32 bits of a seq as the signed key of an advisory lock; pg_locks shows the same bits unsigned.

The body names the seq once, so that a call with a volatile argument is inlined.
*/
    select ((seq << 32) >> 32)::integer
$$;

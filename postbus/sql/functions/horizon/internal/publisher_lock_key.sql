create or replace function postbus_data.publisher_lock_key(seq bigint)
returns integer
language sql
immutable parallel safe
as $$
/*
The low 32 bits of a seq as the signed key of an advisory lock; pg_locks shows the same bits unsigned.

The seq is named once, so that a call of this with a live number is inlined.
*/
    select ((seq << 32) >> 32)::integer
$$;

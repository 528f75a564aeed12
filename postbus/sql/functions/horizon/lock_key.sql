create or replace function postbus_data.lock_key(seq bigint)
returns integer
language sql
immutable parallel safe
as $$
/* The low 32 bits of a seq as the signed key of an advisory lock; pg_locks shows the same bits unsigned. */
    select ((seq & 4294967295) - ((seq & 2147483648) << 1))::integer
$$;

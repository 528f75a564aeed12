create or replace function postbus.partition_of(key text, partitions integer)
returns integer
language sql
immutable strict parallel safe
as $$
/*
Where a key belongs among that many partitions, counted from 0: the first three bytes of the key's SHA-256, modulo their number.

The same in every language and for ever. SHA-256 because Postgres, Python and Spark all have it, and a server in FIPS mode too
(it has no MD5; Postgres's own hash functions are not the same everywhere).
*/
    select mod((get_byte(h.hash, 0) << 16) | (get_byte(h.hash, 1) << 8) | get_byte(h.hash, 2), partitions)
    from (select sha256(convert_to(key, 'UTF8'::name)) as hash offset 0) as h
$$;

create or replace function postbus.partition_of(key text, partitions integer)
returns integer
language sql
immutable strict parallel safe
as $$
/*
The partition of a key among that many partitions, counted from 0: the first three bytes of the key's SHA-256, modulo their
number.

It is the same in every language and never changes. SHA-256 is available in Postgres, Python and Spark, and on a server in FIPS
mode, which has no MD5. Postgres's own hash functions differ between platforms.
*/
    select mod((get_byte(h.hash, 0) << 16) | (get_byte(h.hash, 1) << 8) | get_byte(h.hash, 2), partitions)
    from (select sha256(convert_to(key, 'UTF8'::name)) as hash offset 0) as h
$$;

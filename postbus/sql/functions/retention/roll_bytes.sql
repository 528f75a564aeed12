create or replace function postbus_data.roll_bytes(stream postbus_data.stream)
returns bigint
language sql
immutable
as $$
/* How large a segment becomes: space is freed by whole ones, so that a bound on storage is kept to a tenth of it. */
    select least(stream.segment_bytes, greatest(65536, stream.max_storage / 10))
$$;

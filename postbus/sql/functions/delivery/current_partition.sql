create or replace function postbus_data.current_partition(layout bigint, key text, seq bigint)
returns integer
language sql
immutable
as $$
/* The partition of a layout to which a message belongs, whichever partition it was published to. */
    select ((layout >> 11) & 16777215)::integer
        + coalesce(postbus.partition_of(key, (layout & 2047)::integer), mod(seq, layout & 2047)::integer)
$$;

create or replace function postbus_data.current_partition(layout bigint, key text, seq bigint)
returns integer
language sql
immutable
as $$
/* The partition of a layout to which a message belongs, whichever partition it was published to. */
    select postbus_data.layout_base(layout)
        + coalesce(postbus.partition_of(key, postbus_data.layout_count(layout)), mod(seq, postbus_data.layout_count(layout))::integer)
$$;

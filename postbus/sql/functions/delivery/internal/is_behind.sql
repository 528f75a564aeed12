create or replace function postbus_data.is_behind(reader postbus_data.consumer)
returns boolean
language sql
volatile
as $$
/* Whether publishers write to other partitions than those that a consumer reads. */
    select reader.partition_base
        <> postbus_data.layout_base(pg_sequence_last_value(to_regclass('postbus_data.layout_' || reader.stream_id)))
$$;

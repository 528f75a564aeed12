create or replace function postbus_data.reading_layout(reader postbus_data.consumer)
returns bigint
language sql
volatile
as $$
/*
The partitions that a consumer reads, packed as in the layout register. They are those of the register, unless their number was changed and the consumer
has not come to the new ones yet.
*/
    select (pg_sequence_last_value(to_regclass('postbus_data.layout_' || reader.stream_id)) >> 35 << 35)
        | (reader.partition_base::bigint << 11)
        | mod(
            reader.partition_count
            + case when postbus_data.has_levels(pg_sequence_last_value(to_regclass('postbus_data.layout_' || reader.stream_id))) then 1024 else 0 end,
            2048
        )
$$;

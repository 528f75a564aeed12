create or replace function postbus_data.set_layout(stream_id integer, segment integer, partition_base integer, partition_count integer)
returns void
language plpgsql
as $$
/*
Point publishers at a segment and its partitions, at once and for every snapshot. A stream that has levels keeps them.

The register is one number, see pack_layout. Its caller holds the stream's maintenance mutex, or has just created the stream.
*/
declare
    register regclass := to_regclass('postbus_data.layout_' || stream_id);
begin
    perform setval(
        register,
        postbus_data.pack_layout(
            segment, partition_base, partition_count, coalesce(postbus_data.has_levels(pg_sequence_last_value(register)), false)
        )
    );
end
$$;

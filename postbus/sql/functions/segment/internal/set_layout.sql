create or replace function postbus_data.set_layout(stream_id integer, segment integer, partition_base integer, partition_count integer)
returns void
language plpgsql
as $$
/*
Point publishers at a segment and its partitions, at once and for every snapshot.

The register is one number: 29 bits of segment, 24 of base, 11 of count. Publishers unpack it with shifts by 35 and 11.
*/
begin
    perform setval(
        to_regclass('postbus_data.layout_' || stream_id),
        (segment::bigint << 35) | (partition_base::bigint << 11) | partition_count
    );
end
$$;

create or replace function postbus_data.roll_bytes(stream postbus_data.stream)
returns bigint
language sql
immutable
as $$
/*
The size at which a segment is rolled. Only whole segments free space, so a storage limit is kept to within a tenth of it, and a
stream with a message limit, or a queue, takes little more space than its messages.
*/
    select least(
        stream.segment_bytes,
        case when stream.max_storage is not null then greatest(65536, stream.max_storage / 10) end,
        case when stream.until_acked or stream.max_messages is not null then 16777216 end
    )
$$;

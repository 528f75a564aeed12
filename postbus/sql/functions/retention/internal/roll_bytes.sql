create or replace function postbus_data.roll_bytes(stream postbus_data.stream)
returns bigint
language sql
immutable
as $$
/*
How large a segment becomes: space is freed by whole ones, so that a bound on storage is kept to a tenth of it, and what keeps a number of messages, or
those of a queue, takes little more room than these.
*/
    select least(
        stream.segment_bytes,
        case when stream.max_storage is not null then greatest(65536, stream.max_storage / 10) end,
        case when stream.until_acked or stream.max_messages is not null then 16777216 end
    )
$$;

create or replace function postbus.publish(
    stream text,
    key text default null,
    data text default null,
    headers jsonb default null,
    bytes bytea default null,
    expected_type text default null,
    ttl interval default null,
    deliver_at timestamptz default null,
    dedup_id text default null,
    caller postbus.caller default postbus.current_caller()
)
returns bigint
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Append one message to a stream, in the caller's transaction.

key            routes and orders the message; null puts it in any partition.
data, bytes    the content: data in a json or text stream, bytes in a bytes stream.
headers        a JSON object of strings.
expected_type  refuse (PB409) if the stream's data type is another one; null asks nothing.
ttl            how long it lives: a consumer that comes to it later skips it, or makes it a dead letter. From when it is published.
deliver_at     keep it outside the log until then; null or a time that has passed publishes it now.

dedup_id       names the message: if it was published within the stream's dedup_window, it is not published again.

Returns  the message's seq; or, with deliver_at, the number under which it is scheduled. For a duplicate, the seq of the message that was published,
         negated (0 for one that was scheduled). So too where a stream keeps one message per key and the data is that of the version that stands.
Raises   PB400 with the reason for a message that is not allowed, PB404, PB413 when it is too large.
Touches  the current segment of the stream (insert).
Locks    the horizon of the stream, shared, until the transaction ends. Publishers do not wait for each other.

Hot: the table's name is dynamic, so the insert is planned each call; a bare VALUES with a seq drawn beforehand keeps
that at 20 µs (docs/decisions/0003).
*/
#variable_conflict use_variable
declare
    entry postbus_data.publish_target := postbus_data.begin_publish(stream, expected_type, caller);
    place text := 'insert into postbus_data.log_' || entry.stream_id::text || '_' || postbus_data.layout_segment(entry.layout)::text
        || ' (seq, published_at, partition, key, data, headers, expires_at) values ($1, $2, $3, $4, $5, $6, $7)';
    partition_count integer := postbus_data.layout_count(entry.layout);
    -- partition_of written out: a call of it costs as much as the insert.
    hash bytea := sha256(convert_to(key, 'UTF8'::name));
    partition integer := mod((get_byte(hash, 0) << 16) | (get_byte(hash, 1) << 8) | get_byte(hash, 2), partition_count);
    content json;
    seq bigint;
begin
    if (length(key) <= 255 and postbus_data.tokens_are_valid(key)) is false
        or headers is not null
        or (entry.data_type = 'bytes' and (bytes is null or data is not null))
        or (entry.data_type <> 'bytes' and (data is null or bytes is not null))
        or octet_length(data) > entry.max_message_bytes
        or octet_length(bytes) > entry.max_message_bytes
    then
        perform postbus_data.raise_invalid_message(entry, null, key, data, headers, bytes);
    end if;

    if dedup_id is not null or entry.one_message_per_key then
        return (
            postbus.publish_many(
                stream, array[key], case when data is not null then array[data] end, case when headers is not null then array[headers] end,
                case when bytes is not null then array[bytes] end, expected_type, ttl, deliver_at,
                case when dedup_id is not null then array[dedup_id] end, caller
            )
        )[1];
    end if;
    if ttl is not null or deliver_at is not null then
        perform postbus_data.check_ttl(ttl);
        if deliver_at > clock_timestamp() then
            return postbus_data.schedule(entry, null, deliver_at, ttl, key, data, headers, bytes);
        end if;
    end if;
    if entry.data_type = 'json' then
        content := postbus_data.as_json(data, null);
    end if;
    -- Number and time are taken in one moment: a time that lags its number would hide the message from readers by time.
    seq := nextval(entry.sequence);
    if pg_sequence_last_value(to_regclass('postbus_data.layout_' || entry.stream_id::text)) <> entry.layout then
        -- Others may have published to a new layout and have lower numbers. A key's messages of the old one are read first, so this is not to go there.
        return postbus.publish(stream, key, data, headers, bytes, expected_type, ttl, caller => caller);
    end if;
    partition := postbus_data.layout_base(entry.layout)
        + coalesce(partition, mod(seq, partition_count::bigint)::integer);
    if entry.data_type = 'json' then
        execute place using seq, clock_timestamp(), partition, key, content, headers, clock_timestamp() + ttl;
    elsif entry.data_type = 'text' then
        execute place using seq, clock_timestamp(), partition, key, data, headers, clock_timestamp() + ttl;
    else
        execute place using seq, clock_timestamp(), partition, key, bytes, headers, clock_timestamp() + ttl;
    end if;
    return seq;
end
$$;

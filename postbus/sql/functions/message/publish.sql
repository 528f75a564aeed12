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
    priority integer default null,
    caller postbus.caller default postbus.current_caller()
)
returns bigint
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Publish one message to a stream, in the caller's transaction.

key            decides the message's partition, and so its order; null: any partition. In a stream with channels it also names the channel.
data, bytes    the content: data in a json or text stream, bytes in a bytes stream. Data may also be of type json or jsonb.
headers        a JSON object of strings.
expected_type  raise PB409 if the stream has another data type; null accepts any.
ttl            how long the message lives after it is published: later, consumers skip it or make it a dead letter.
deliver_at     keep the message outside the log until this time; null or a past time publishes it now.
priority       0 to 9, higher first; null means 4. A message of a higher level may overtake others, also those of its key.
dedup_id       a name for the message: if it was published within the stream's dedup_window, it is not published again.

Returns  the message's seq, or with deliver_at its schedule id. For a duplicate, the negated seq of the message published before
         (0 if that one was scheduled). The same in a stream with one message per key, when the data equals that of the current
         version.
Raises   PB400 with the reason for an invalid message (in a stream with channels: also without a key, or with a priority), PB403 without the right to publish, PB404 for an unknown stream, PB409
         for another data type, a dedup_id where the stream has no dedup_window, or another priority than 4 where a consumer reads in
         order "partition", PB413 when the message is too large, PB503
         when another application holds a lock that the stream needs, PB507 when the stream is full.
Touches  the current segment of the stream (insert), or scheduled (insert); level (insert) when a priority is used first.
Locks    the horizon of the stream, shared, until the transaction ends. Publishers do not wait for each other, except those of the
         same dedup_id, or of the same key in a stream with one message per key.

Hot: the table's name is dynamic, so the insert is planned at each call. A bare VALUES with a seq drawn beforehand keeps that at
20 µs (docs/decisions/0003).
*/
#variable_conflict use_variable
declare
    entry postbus_data.publish_target := postbus_data.begin_publish(stream, expected_type, caller);
    place text := 'insert into postbus_data.log_' || entry.stream_id::text || '_' || postbus_data.layout_segment(entry.layout)::text
        || ' (seq, published_at, partition, key, data, headers, expires_at) values ($1, $2, $3, $4, $5, $6, $7)';
    partition_count integer := postbus_data.layout_count(entry.layout);
    -- partition_of, inlined by hand: a call of it costs as much as the insert.
    hash bytea := sha256(convert_to(case when entry.channel_tokens is null then key else postbus_data.channel_of(key, entry.channel_tokens) end, 'UTF8'::name));
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

    if entry.channel_tokens is not null then
        perform postbus_data.check_channels(entry, array[key], array[priority], false);
    end if;
    if dedup_id is not null or entry.one_message_per_key then
        return (
            postbus.publish_many(
                stream, array[key], case when data is not null then array[data] end, case when headers is not null then array[headers] end,
                case when bytes is not null then array[bytes] end, expected_type, ttl, deliver_at,
                case when dedup_id is not null then array[dedup_id] end, case when priority is not null then array[priority] end, caller
            )
        )[1];
    end if;
    if ttl is not null or deliver_at is not null or priority is not null then
        perform postbus_data.check_ttl(ttl);
        perform postbus_data.check_priorities(array[priority], false);
        if deliver_at > clock_timestamp() then
            return postbus_data.schedule(entry, null, deliver_at, ttl, key, data, headers, bytes, priority);
        end if;
    end if;
    if entry.data_type = 'json' then
        content := postbus_data.as_json(data, null);
    end if;
    -- Take seq and time together: with a time older than its seq, readers by time would miss the message.
    seq := nextval(entry.sequence);
    if pg_sequence_last_value(to_regclass('postbus_data.layout_' || entry.stream_id::text)) <> entry.layout then
        -- Others may have published to a new layout with lower seqs. Readers finish the old layout first, so this message must
        -- not go there.
        return postbus.publish(stream, key, data, headers, bytes, expected_type, ttl, priority => priority, caller => caller);
    end if;
    partition := postbus_data.layout_base(entry.layout)
        + coalesce(partition, mod(seq, partition_count::bigint)::integer);
    if priority <> 4 then
        partition := postbus_data.lane_of(priority) + partition;
        perform postbus_data.note_levels(entry.stream_id, array[priority], seq);
    end if;
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

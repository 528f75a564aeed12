create or replace function postbus_data.check_messages(
    entry postbus_data.publish_target,
    message_count integer,
    keys text[],
    data text[],
    headers jsonb[],
    bytes bytea[],
    dedup_ids text[],
    priorities integer[] default null
)
returns json[]
language plpgsql
as $$
/*
Refuse a batch with a message that the stream does not accept: PB400 with the place and the reason, or PB413.

Returns  the data as JSON, if the stream holds JSON.
*/
begin
    perform postbus_data.check_batch(message_count, keys, data, headers, bytes, dedup_ids, priorities);
    if postbus_data.tokens_are_valid(array_to_string(keys, '.')) is false
        or (
            select max(length(m.key)) > 255
                or count(m.data) + count(m.bytes) < message_count
                or max(octet_length(m.data)) > entry.max_message_bytes
                or max(octet_length(m.bytes)) > entry.max_message_bytes
            from unnest(keys, data, bytes) as m (key, data, bytes)
        )
        or (entry.data_type = 'bytes') <> (data is null)
        or headers is not null
    then
        perform postbus_data.raise_invalid_message(entry, m.place::integer, m.key, m.data, m.header, m.bytes)
        from unnest(keys, data, headers, bytes) with ordinality as m (key, data, header, bytes, place)
        order by m.place;
    end if;
    return case when entry.data_type = 'json' then postbus_data.as_json_array(data) end;
end
$$;

create or replace function postbus_data.write_publisher(stream_id integer)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
/*
Write the function postbus_data.publish_<stream id>, which publishes one message to one stream as postbus.publish does.

It knows the stream's table, partitions and limits, so its insert is planned once for a session instead of at each call
(docs/decisions/0003). Whatever it does not know or like, a layout that has moved on or a message that is not allowed, it
leaves to postbus.publish. Written anew when the stream is created or altered and when a new segment is begun; a caller
that still has the last one is served by that rule.

Touches  stream (locks the row, so that two writers do not meet).
*/
declare
    stream postbus_data.stream;
    layout bigint := pg_sequence_last_value(to_regclass('postbus_data.layout_' || stream_id));
begin
    select s.* into stream from postbus_data.stream as s where s.id = stream_id for update;
    execute format(
        $template$
create or replace function postbus_data.publish_%1$s(key text, data %2$s, headers jsonb)
returns bigint
language plpgsql
as $body$
#variable_conflict use_variable
declare
    hash bytea := sha256(convert_to(key, 'UTF8'::name));
    seq bigint;
begin
    if %11$s
        or not postbus_data.hold_horizon(%1$s, 'postbus_data.seq_%1$s'::regclass)
        or (pg_sequence_last_value('postbus_data.layout_%1$s'::regclass) = %3$s::bigint) is not true
        or (length(key) <= 255 and postbus_data.tokens_are_valid(key)) is false
        or (octet_length(data) <= %4$s) is not true
        or headers is not null
    then
        return postbus.publish(%5$L, key, %6$s => data, headers => headers);
    end if;
    seq := nextval('postbus_data.seq_%1$s'::regclass);
    if pg_sequence_last_value('postbus_data.layout_%1$s'::regclass) <> %3$s::bigint then
        -- See publish. This number stays unused.
        return postbus.publish(%5$L, key, %6$s => data);
    end if;
    insert into %7$s (seq, published_at, partition, key, data)
    values (
        seq,
        clock_timestamp(),
        %8$s + coalesce(mod((get_byte(hash, 0) << 16) | (get_byte(hash, 1) << 8) | get_byte(hash, 2), %9$s), mod(seq, %9$s::bigint)::integer),
        key,
        %10$s
    );
    return seq;
end
$body$
        $template$,
        stream.id,
        case stream.data_type when 'bytes' then 'bytea' else 'text' end,
        layout,
        stream.max_message_bytes,
        stream.name,
        case stream.data_type when 'bytes' then 'bytes' else 'data' end,
        postbus_data.log_table(stream.id, (layout >> 35)::integer),
        (layout >> 11) & 16777215,
        layout & 2047,
        case stream.data_type when 'json' then 'data::json' else 'data' end,
        case when stream.is_full or stream.one_message_per_key then 'true' else 'false' end
    );
end
$$;

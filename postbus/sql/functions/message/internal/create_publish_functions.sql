create or replace function postbus_data.create_publish_functions(stream_id integer)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
/*
Write the functions postbus_data.publish_<stream id> and postbus_data.publish_many_<stream id>, which publish to one stream as postbus.publish and
postbus.publish_many do.

They know the stream's table, partitions and limits, so their inserts are planned once for a session instead of at each call
(docs/decisions/0003). Whatever they do not know or like, a layout that has moved on or a message that is not allowed, they
leave to postbus.publish and publish_many. Written anew when the stream is created or altered and when a new segment is begun; a caller
that still has the last ones is served by that rule. They run with the rights of their owner, and ask
nobody: who may call them is a matter of grants, see apply_grants.

A transaction without an id has published nothing, so it takes the lock of lock_horizon without looking for what it holds, and without noting it: the
library calls these in transactions of their own, where no other publish follows. One that does takes another lock, and notes that.

Touches  stream (locks the row, so that two writers do not meet).
*/
declare
    stream postbus_data.stream;
    is_bytes boolean;
    names jsonb;
    layout bigint := pg_sequence_last_value(to_regclass('postbus_data.layout_' || stream_id));
begin
    select s.* into stream from postbus_data.stream as s where s.id = stream_id for update;
    is_bytes := stream.data_type = 'bytes';
    names := jsonb_build_object(
        'stream_id', stream.id,
        'stream_name', quote_literal(stream.name),
        'log_table', postbus_data.log_table(stream.id, postbus_data.layout_segment(layout)),
        'layout', layout,
        'partition_base', postbus_data.layout_base(layout),
        'partition_count', postbus_data.layout_count(layout),
        'max_message_bytes', stream.max_message_bytes,
        'lock_class', postbus_data.publisher_lock_class(stream.id),
        'is_refused', stream.is_full or stream.one_message_per_key,
        'data_type', case when is_bytes then 'bytea' else 'text' end,
        'data_argument', case when is_bytes then 'bytes' else 'data' end,
        'content', case stream.data_type when 'json' then 'data::json' else 'data' end,
        'contents', case stream.data_type when 'json' then 'm.data::json' else 'm.data' end
    );
    -- A message of a stream with channels has a key.
    execute postbus_data.render(
        postbus_data.publish_template(),
        jsonb_build_object('channel', postbus_data.channel_expression('key', stream.channel_tokens))
        || names
        || case when stream.channel_tokens is not null and not (names -> 'is_refused')::boolean then '{"is_refused": "key is null"}' else '{}'::jsonb end
    );
    execute postbus_data.render(
        postbus_data.publish_many_template(),
        jsonb_build_object('channel', postbus_data.channel_expression('u.key', stream.channel_tokens))
        || names
        || case
            when stream.channel_tokens is not null and not (names -> 'is_refused')::boolean then '{"is_refused": "array_position(keys, null) is not null"}'
            else '{}'::jsonb
        end
    );
end
$$;

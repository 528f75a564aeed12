create or replace function postbus_data.stream_defaults()
returns jsonb
language sql
immutable
as $$
/* The settings of a stream that was created without any. */
    select jsonb_build_object(
        -- <stream settings: defaults>
        'data_type', 'json'::text,
        'one_message_per_key', false,
        'channel_tokens', null,
        'partitions', 8,
        'max_message_bytes', 8388608,
        'segment_bytes', 268435456,
        'segment_age', interval '1 day',
        'retain_up_to', null,
        'retain_at_least', null,
        'max_messages', null,
        'max_storage', null,
        'until_acked', false,
        'when_full', 'evict'::text,
        'dedup_window', null,
        'process_unmodified', false
        -- </stream settings>
    )
$$;

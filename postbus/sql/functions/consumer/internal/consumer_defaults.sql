create or replace function postbus_data.consumer_defaults()
returns jsonb
language sql
immutable
as $$
/* The settings of a consumer that was created without any. */
    select jsonb_build_object(
        'backoff', '{}'::interval[], 'backoff_factor', null, 'backoff_cap', null, 'backoff_jitter', 0,
        'filter_key_pattern', null, 'filter_headers', null, 'filter_headers_not', null, 'filter_data', null,
        -- <consumer settings: defaults>
        'ordering', 'key'::text,
        'ack_wait', interval '30 seconds',
        'max_ack_pending', 10000,
        'max_deliver', null,
        'retain_dead', null,
        'max_per_key', null,
        'max_waiting', 1000,
        'on_dead', 'continue'::text,
        'on_expired', 'skip'::text,
        'keep_unread', false,
        'expire_after', null,
        'keep_history', null,
        'dead_letters_to', null,
        'ageing', null,
        'fair', false
        -- </consumer settings>
    )
$$;

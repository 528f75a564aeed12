-- The functions that take or return settings do so in one order, in which a new setting comes last.
drop function if exists postbus.create_stream, postbus.alter_stream, postbus.list_streams, postbus.stream_info;
drop function if exists postbus.create_consumer, postbus.alter_consumer, postbus.list_consumers, postbus.consumer_info;
drop function if exists postbus_data.check_limits, postbus_data.check_retention, postbus_data.check_dedup_window;
-- check_stream has the ranges.
alter table postbus_data.stream
    drop constraint stream_data_type_check,
    drop constraint stream_max_message_bytes_check,
    drop constraint stream_segment_bytes_check,
    drop constraint stream_segment_age_check;

drop type postbus.stream_info, postbus.consumer_info;

create type postbus.stream_info as (
    name text,
    id integer,
    is_full boolean,
    start_seq bigint,
    last_seq bigint,
    message_estimate bigint,
    bytes bigint,
    segment_count integer,
    created_at timestamptz,
    data_type text,
    one_message_per_key boolean,
    partitions integer,
    max_message_bytes integer,
    segment_bytes bigint,
    segment_age interval,
    retain_up_to interval,
    retain_at_least interval,
    max_messages bigint,
    max_storage bigint,
    until_acked boolean,
    when_full text,
    dedup_window interval,
    process_unmodified boolean
);

create type postbus.consumer_info as (
    stream text,
    name text,
    id integer,
    is_group boolean,
    paused boolean,
    created_at timestamptz,
    backoff interval[],
    backoff_factor double precision,
    backoff_cap interval,
    backoff_jitter double precision,
    filter_key_pattern text,
    filter_headers jsonb,
    filter_headers_not jsonb,
    filter_data text,
    ordering text,
    ack_wait interval,
    max_ack_pending integer,
    max_deliver integer,
    retain_dead interval,
    max_per_key integer,
    max_waiting integer,
    on_dead text,
    on_expired text,
    keep_unread boolean,
    expire_after interval,
    keep_history interval
);

-- The backlog of consumers is counted, streams say how many messages are scheduled, a peek says when a message was delivered last, and a
-- sweep counts the deliveries whose lease has expired.

-- Their results change.
drop function if exists
    postbus.stats, postbus.consumer_overview, postbus.overview, postbus.stream_info, postbus.list_streams, postbus_data.held_states;

drop type postbus.stream_info;
create type postbus.stream_info as (
    name text,
    id integer,
    is_full boolean,
    start_seq bigint,
    last_seq bigint,
    message_estimate bigint,
    bytes bigint,
    segment_count integer,
    scheduled bigint,
    next_scheduled_at timestamptz,
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

alter type postbus.peeked add attribute last_delivered_at timestamptz;

alter table postbus_data.sweep_state add column timed_out_count bigint not null default 0;

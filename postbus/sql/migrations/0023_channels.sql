-- Streams have channels: limits for each, and turns between them.

drop function if exists postbus.create_stream, postbus.alter_stream, postbus.list_streams, postbus.stream_info;
drop function if exists postbus.create_consumer, postbus.alter_consumer, postbus_data.spark_state;
-- What cannot be altered comes before what can.
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
    channel_tokens integer,
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
alter type postbus.consumer_info add attribute fair boolean;
alter type postbus_data.publish_target add attribute channel_tokens integer;

alter table postbus_data.stream add column channel_tokens integer;
alter table postbus_data.consumer
    add column fair boolean not null default false,
    add column by_channel boolean not null default false,
    drop column is_plain;
alter table postbus_data.consumer add column is_plain boolean generated always as (
    not paused
    and not by_channel
    and on_dead <> 'hold'
    and max_per_key is null
    and keep_history is null
    and filter_key_regex is null
    and filter_headers is null
    and filter_headers_not is null
    and filter_data is null
) stored;
alter table postbus_data.due add column channel text collate "C";
create index due_channel on postbus_data.due ((consumer_id + 0), epoch, channel, n) where channel is not null;

create table postbus_data.channel (
    stream_id integer not null references postbus_data.stream on delete cascade,
    pattern text collate "C" not null,
    regex text collate "C",
    rank text collate "C" not null,
    max_concurrency integer,
    max_rate integer,
    per interval not null,
    burst integer not null,
    weight integer not null,
    paused boolean not null,
    primary key (stream_id, pattern)
);
create index channel_rank on postbus_data.channel (stream_id, rank) where regex is not null;

create table postbus_data.turn (
    consumer_id integer not null,
    epoch integer not null,
    partition integer not null,
    channel text collate "C" not null,
    n bigint not null,
    after_seq bigint not null,
    quantum_left integer,
    ready_at timestamptz,
    limited_by text collate "C",
    max_concurrency integer,
    primary key (consumer_id, epoch, partition, channel, n)
);
create index turn_next on postbus_data.turn ((consumer_id + 0), epoch, partition, n) where ready_at is null;
create index turn_resting on postbus_data.turn ((consumer_id + 0), epoch, partition, ready_at, n) where ready_at is not null;

create table postbus_data.channel_position (
    consumer_id integer not null,
    epoch integer not null,
    partition integer not null,
    n bigint not null,
    leases bigint[] not null,
    turned_to bigint not null,
    last_turn bigint not null,
    rested_to timestamptz not null,
    turns_first boolean not null,
    primary key (consumer_id, epoch, partition, n)
);
create table postbus_data.channel_pace (
    consumer_id integer not null,
    channel text collate "C" not null,
    tat timestamptz not null,
    primary key (consumer_id, channel, tat)
);

create type postbus_data.channel_room as (
    room integer,
    quantum integer,
    limited_by text,
    ready_at timestamptz,
    max_concurrency integer,
    step interval,
    tat timestamptz
);
alter type postbus_data.receive_state add attribute batch postbus_data.batch;
create type postbus_data.channel_claim as (
    place postbus_data.position,
    began postbus_data.position,
    state postbus_data.channel_position,
    channel_tokens integer,
    data_type text,
    start_seq bigint,
    has_limits boolean,
    quantum integer,
    now_at timestamptz,
    in_flight text[],
    horizon bigint,
    is_read boolean,
    scan_left integer,
    seqs bigint[],
    segment integer,
    retried bigint[],
    attempts integer[],
    is_changed boolean
);
create type postbus_data.fresh_messages as (
    seqs bigint[],
    channels text[],
    expired bigint[],
    last_seq bigint,
    is_end boolean,
    scanned integer,
    late text[],
    late_after bigint[]
);

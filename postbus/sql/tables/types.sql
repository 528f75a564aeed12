-- Types that functions pass to each other and return to users.

-- A stream as users see it. See stream_info for the fields.
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
    -- <stream settings: attributes>
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
    -- </stream settings>
);

-- What a publisher needs to know of a stream to write to it.
create type postbus_data.publish_target as (
    stream_id integer,
    data_type text,
    max_message_bytes integer,
    sequence regclass,
    layout bigint,
    one_message_per_key boolean,
    channel_tokens integer
);

-- Messages to publish, column by column; some may turn out to be duplicates or unchanged versions. answers has the result for
-- those, and null for the others, whose seqs are in seqs. published_at is when the seqs were drawn.
create type postbus_data.publish_batch as (
    keys text[],
    data text[],
    contents json[],
    headers jsonb[],
    bytes bytea[],
    dedup_ids text[],
    seqs bigint[],
    answers bigint[],
    published_at timestamptz,
    layout bigint,
    priorities integer[]
);

-- A message as readers get it. data is null in a bytes stream, bytes in any other. For resume see read.
create type postbus.message as (
    seq bigint,
    partition integer,
    key text,
    data text,
    bytes bytea,
    headers jsonb,
    published_at timestamptz,
    resume text,
    priority integer
);

-- The conditions of a read. A row of nulls accepts every message.
create type postbus_data.read_filter as (
    key text,
    key_regex text,
    partition integer,
    from_time timestamptz,
    to_time timestamptz
);

-- A message as a consumer receives it. attempt counts its deliveries from 1. ack_id names this delivery only. deferrals
-- counts how often it was deferred; state (as JSON) or state_bytes is what was saved with it then.
create type postbus.delivery as (
    ack_id text,
    attempt integer,
    seq bigint,
    partition integer,
    key text,
    data text,
    bytes bytea,
    headers jsonb,
    published_at timestamptz,
    deferrals integer,
    state text,
    state_bytes bytea,
    priority integer
);

-- The messages of one lease, column by column: one row for each would cost the server twice as much. lease is the first part of
-- their ack ids; attempts is null when all are delivered for the first time, and a last attempt is negated; one of data and bytes is null.
create type postbus_data.batch as (
    lease text,
    partition integer,
    seqs bigint[],
    attempts integer[],
    keys text[],
    data text[],
    bytes bytea[],
    headers jsonb[],
    published_at timestamptz[]
);

-- A consumer's settings.
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
    -- <consumer settings: attributes>
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
    keep_history interval,
    dead_letters_to text,
    ageing interval,
    fair boolean
    -- </consumer settings>
);

-- What a receive has found out so far, passed from one step to the next.
create type postbus_data.receive_state as (
    data_type text,
    start_seq bigint,
    -- The layout register: where publishers write, and how many partitions there are.
    layout bigint,
    lease_until timestamptz,
    -- How many messages of a partition may be in flight; null when max_ack_pending is counted for all partitions together.
    quota integer,
    -- Whether the redelivery log has a message for this receive.
    has_due boolean,
    -- The horizon, once this receive has read it.
    horizon bigint,
    -- The step could not look: another session holds the mutex.
    busy boolean,
    -- The step's messages, if it has read them itself; otherwise null.
    messages postbus.delivery[],
    -- What the step found to lease: at most wanted messages with after_seq < seq <= to_seq, all in one segment. wanted is
    -- null if it found nothing.
    place postbus_data.position,
    -- In order "key": the keys that are not free; null when all are.
    blocked text[],
    -- How many messages of a partition may be scanned for some that pass the filter.
    scan integer,
    segment integer,
    after_seq bigint,
    to_seq bigint,
    wanted integer,
    -- Of a consumer by channel: what the step has leased.
    batch postbus_data.batch
);

-- What a claim by channel has found out of a partition, passed from one step to the next.
create type postbus_data.channel_claim as (
    place postbus_data.position,
    -- What it was.
    began postbus_data.position,
    state postbus_data.channel_position,
    channel_tokens integer,
    data_type text,
    start_seq bigint,
    has_limits boolean,
    -- Messages of a turn with weight 1; null for a consumer that is not fair.
    quantum integer,
    now_at timestamptz,
    -- The channels of the messages in flight and of those chosen, one by one.
    in_flight text[],
    -- The horizon, once this receive has read it; whether it is known that nothing more is below it.
    horizon bigint,
    is_read boolean,
    -- How many more messages may be looked at.
    scan_left integer,
    -- What is chosen, and the segment that has all of it; null for several.
    seqs bigint[],
    segment integer,
    retried bigint[],
    attempts integer[],
    -- Whether the position has to be written.
    is_changed boolean
);

-- What a channel may have now. room is how many messages its limits leave; a turn has quantum messages. If room is 0, limited_by is the limit and ready_at
-- when it lets the channel go on, as in the table turn. step is how long each message uses of its rate, and tat how much is used.
create type postbus_data.channel_room as (
    room integer,
    quantum integer,
    limited_by text,
    ready_at timestamptz,
    max_concurrency integer,
    step interval,
    tat timestamptz
);

-- What a look at new messages of a partition has found: the first of each channel that has no turn waiting. Up to last_seq nothing needs a further look;
-- late are the channels that have more, above late_after; is_end says that there was nothing more to look at.
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

-- Which messages are taken. The others, up to last_seq, are parked, filtered out or expired, and need no further look.
create type postbus_data.chosen_messages as (
    seqs bigint[],
    keys text[],
    place postbus_data.position,
    last_seq bigint
);

-- A message that a consumer gave up, and why. saved_state or saved_bytes is what was saved with it when it was deferred.
create type postbus.dead_letter as (
    seq bigint,
    partition integer,
    key text,
    data text,
    bytes bytea,
    headers jsonb,
    published_at timestamptz,
    attempts integer,
    reason text,
    died_at timestamptz,
    deferrals integer,
    saved_state text,
    saved_bytes bytea,
    priority integer
);

-- A message as a consumer sees it: state is available, delivered, waiting or dead. until is when the lease ends or the retry is
-- due. ack_id names the delivery in flight, so that an operator can settle it if its worker never will. last_delivered_at is known of a
-- message that is in flight or whose lease has just expired. saved_state or saved_bytes is what was saved with it when it was deferred.
create type postbus.peeked as (
    seq bigint,
    partition integer,
    key text,
    data text,
    bytes bytea,
    headers jsonb,
    published_at timestamptz,
    state text,
    attempts integer,
    until timestamptz,
    reason text,
    ack_id text,
    last_delivered_at timestamptz,
    deferrals integer,
    saved_state text,
    saved_bytes bytea,
    priority integer
);

-- A pipeline and its progress. See list_pipelines for the fields.
create type postbus.pipeline_info as (
    name text,
    kind text,
    stream text,
    state text,
    message_count bigint,
    run_count bigint,
    total_estimate bigint,
    rate double precision,
    lag_estimate bigint,
    position_seq bigint,
    last_error text,
    started_at timestamptz,
    noted_at timestamptz,
    ended_at timestamptz,
    aside_count bigint,
    late_count bigint
);

-- The outcome of a delivery. data and bytes are null when the message is gone from the stream.
create type postbus.history_entry as (
    seq bigint,
    partition integer,
    key text,
    data text,
    bytes bytea,
    headers jsonb,
    published_at timestamptz,
    outcome text,
    attempt integer,
    received_at timestamptz,
    finished_at timestamptz,
    duration interval,
    last_error text
);

-- A range of a partition claimed by a group's worker. token names it for commit; null when it was claimed without a lease.
create type postbus.claimed as (
    partition integer,
    from_seq bigint,
    to_seq bigint,
    message_count integer,
    token text,
    deadline timestamptz
);

-- A recurring schedule; see postbus.list_schedules.
create type postbus.schedule_info as (
    stream text,
    name text,
    cron text,
    every interval,
    time_zone text,
    key text,
    data text,
    bytes bytea,
    headers jsonb,
    ttl interval,
    catch_up text,
    max_catch_up integer,
    paused boolean,
    problem text,
    created_at timestamptz,
    data_type text,
    now_at timestamptz,
    -- The last five, newest first: objects with occurrence, published_at and seq.
    last_runs jsonb,
    priority integer
);

-- A Postgres source; see postbus.list_sources. Its URL is not in it.
create type postbus.source_info as (
    name text,
    stream text,
    database text,
    tables text[],
    operations text[],
    columns jsonb,
    filters jsonb,
    key_template text,
    format text,
    backfill boolean,
    slot text,
    publication text,
    state text,
    problem text,
    remedy text,
    lag_bytes bigint,
    lag_seconds double precision,
    wal_held_bytes bigint,
    change_count bigint,
    transaction_count bigint,
    changes_per_second double precision,
    position text,
    committed_at timestamptz,
    -- Objects with schema, name, backfill, row_count, estimated_count and problem.
    found_tables jsonb,
    created_at timestamptz,
    updated_at timestamptz
);

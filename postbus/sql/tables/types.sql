-- What functions hand to each other and to users.

-- A stream as its users see it. stream_info says what each field means.
create type postbus.stream_info as (
    name text,
    id integer,
    data_type text,
    partitions integer,
    max_message_bytes integer,
    segment_bytes bigint,
    segment_age interval,
    start_seq bigint,
    last_seq bigint,
    message_estimate bigint,
    bytes bigint,
    segment_count integer,
    created_at timestamptz
);

-- What a publisher needs to know of a stream to write to it.
create type postbus_data.entry as (
    stream_id integer,
    data_type text,
    max_message_bytes integer,
    sequence regclass,
    layout bigint
);

-- A message as readers get it. data is null in a bytes stream, bytes in any other. resume: see read.
create type postbus.message as (
    seq bigint,
    partition integer,
    key text,
    data text,
    bytes bytea,
    headers jsonb,
    published_at timestamptz,
    resume text
);

-- What a message must be to be read. A row of nulls lets everything through.
create type postbus_data.read_filter as (
    key text,
    key_regex text,
    partition integer,
    from_time timestamptz,
    to_time timestamptz
);

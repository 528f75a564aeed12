-- A row is one table of a stream's log. In its life a segment is prepared (its table exists, nobody writes to it), current
-- (the layout register names it), rolled (the register has moved on, late publishers may still write) and sealed (nobody can
-- write). At most one segment is rolled and not sealed, so a message's seq lies in one of at most two segments.
create table postbus_data.segment (
    stream_id integer not null references postbus_data.stream on delete cascade,
    number integer not null check (number between 1 and 536870911),
    -- Partitions base … base + count - 1, and as many for each other level in use; see lane_of. A new layout begins a new segment, and partition numbers are never reused.
    partition_base integer not null check (partition_base between 0 and 16777215),
    partition_count integer not null check (partition_count between 1 and 1024),
    -- Every message here has a seq above this: last_value of the stream's sequence when publishers were pointed at it,
    -- or when it was prepared.
    after_seq bigint not null,
    prepared_at timestamptz not null default clock_timestamp(),
    -- The register may name a segment only after the transaction that prepared it has committed.
    prepared_by xid8 not null default pg_current_xact_id(),
    -- Publishers that may still write here hold a horizon lock at or below this. Null until rolled.
    rolled_at_seq bigint,
    -- Known once sealed. last_seq is after_seq when the segment stayed empty.
    sealed_at timestamptz,
    last_seq bigint,
    last_published_at timestamptz,
    -- With one message per key: the length of the stream when this segment was last searched for replaced versions.
    compacted_at_seq bigint,
    primary key (stream_id, number)
);

-- A row says that messages of a priority other than the default were published to a stream, none of them at or below since_seq. Publishers do not wait for
-- each other, so several rows may say it of a priority; then the lowest that can be seen counts.
create table postbus_data.level (
    id bigint generated always as identity primary key,
    stream_id integer not null,
    priority integer not null,
    since_seq bigint not null
);

-- The levels of a stream.
create index level_stream on postbus_data.level (stream_id, priority);

-- A row is a message whose segment was dropped while a consumer still held it: in flight, failed, or parked. It is deleted
-- when no consumer holds it.
create table postbus_data.kept (
    stream_id integer not null references postbus_data.stream on delete cascade,
    partition integer not null,
    seq bigint not null,
    published_at timestamptz not null,
    expires_at timestamptz,
    key text collate "C",
    data text,
    bytes bytea,
    headers jsonb,
    primary key (stream_id, partition, seq)
);

-- To find the segments with messages above a seq: those with last_seq > seq or not sealed yet, in order of their number.
create index segment_last_seq on postbus_data.segment (stream_id, last_seq, number);

-- A row counts what a dropped segment held: the messages of each partition. It tells a consumer that comes too late how many
-- it has missed. When a stream has more than a hundred rows, the oldest two are merged.
create table postbus_data.dropped (
    stream_id integer not null references postbus_data.stream on delete cascade,
    number integer not null,
    partition_base integer not null,
    after_seq bigint not null,
    last_seq bigint not null,
    counts bigint[] not null,
    primary key (stream_id, number)
);

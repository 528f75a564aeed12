-- A row is one consumer: a named reader of a stream. What it has read and holds is in the tables below, by its id.
create table postbus_data.consumer (
    -- Mutexes use 2^30 + 2^29 + id as their class; see functions/consumer/internal/consumer_lock_class.sql.
    id integer generated always as identity (maxvalue 536870911) primary key,
    stream_id integer not null references postbus_data.stream on delete cascade,
    -- Streams keep their names, so a consumer is found by both in one probe.
    stream_name text collate "C" not null,
    name text collate "C" not null,
    ordering text collate "C" not null,
    ack_wait interval not null,
    max_ack_pending integer not null,
    -- Null delivers for ever.
    max_deliver integer,
    -- How long a message waits after its first, second, … failure; the last one repeats. With a factor, backoff[1] grows by it at
    -- each failure up to the cap. jitter 0.2 makes each delay up to 20 % shorter or longer.
    backoff interval[] not null,
    backoff_factor double precision,
    backoff_cap interval,
    backoff_jitter double precision not null,
    -- Null keeps dead letters for ever.
    retain_dead interval,
    -- In order "key": how many messages of a key a batch may hold (null for any number), how many messages may be parked, and whether a
    -- dead letter lets its key go on (continue) or holds it (hold).
    max_per_key integer,
    max_waiting integer not null,
    on_dead text collate "C" not null,
    -- Which messages it wants; nulls let all through. The regular expression is made from the pattern. A message must have all of
    -- filter_headers, and none of the one-pair objects of filter_headers_not.
    filter_key_pattern text collate "C",
    filter_key_regex text collate "C",
    filter_headers jsonb,
    filter_headers_not jsonb[],
    filter_data jsonpath,
    -- What becomes of a message whose time to live is over: skip or bury.
    on_expired text collate "C" not null,
    -- The stream keeps what it has not finished.
    keep_unread boolean not null default false,
    -- It is removed when nobody has received from it for so long; null never.
    expire_after interval,
    -- For how long it is remembered what became of each delivery; null for not at all.
    keep_history interval,
    -- It is read by position: claim, fetch, commit.
    is_group boolean not null default false,
    paused boolean not null default false,
    -- Seeking begins a new epoch: positions, leases and retries of an older one count no more.
    epoch integer not null default 1,
    -- Where partitions without a position are read from: above this seq.
    start_after bigint not null,
    -- Which partitions it reads: base … base + count - 1. They are older than those that publishers write to until it has read them to their end;
    -- see change_layout.
    partition_base integer not null,
    partition_count integer not null,
    created_at timestamptz not null default clock_timestamp(),
    -- Nothing has to be decided about its messages: they are given as they come. Only for such consumers receiving goes the shortest way.
    is_plain boolean generated always as (
        not paused
        and on_dead <> 'hold'
        and max_per_key is null
        and keep_history is null
        and filter_key_regex is null
        and filter_headers is null
        and filter_headers_not is null
        and filter_data is null
    ) stored,
    unique (stream_name, name)
);

-- The consumers of a stream.
create index consumer_stream on postbus_data.consumer (stream_id);

-- A row says how far a consumer has read a partition: up to read_to_seq. Insert-only: a claim, under the partition's mutex, inserts the next row and
-- deletes the last, and a reader takes the right edge of the index, however many dead rows lie to the left of it.
create table postbus_data.position (
    consumer_id integer not null,
    epoch integer not null,
    partition integer not null,
    read_to_seq bigint not null,
    -- The horizon last seen: up to it, no look at pg_locks is needed.
    horizon bigint not null,
    -- At most so many messages of the partition are in flight.
    pending_bound integer not null,
    -- The segment that holds all that is published above read_to_seq, as long as the layout register still names it; 0 says nothing.
    segment integer not null default 0,
    -- In the orders "key" and "partition": the leases that were in flight after the claim. No other may be.
    leases bigint[],
    -- In order "key": the lowest seq that is parked, null for none, and how many are.
    parked_from bigint,
    parked_count integer not null default 0,
    -- How many messages were passed over because their time to live was over.
    expired_count bigint not null default 0,
    -- About how many were gone from the stream before it came to them.
    missed_count bigint not null default 0,
    -- In order "none": no lease of the partition's first deliveries that is in flight ends before this; null says nothing. See count_in_flight.
    pending_since timestamptz,
    primary key (consumer_id, epoch, partition, read_to_seq)
);

-- A row says how far a consumer has read its redelivery log, the table due. Insert-only, as position.
create table postbus_data.redelivery_position (
    consumer_id integer not null,
    epoch integer not null,
    read_to_n bigint not null,
    -- At most so many redelivered messages are in flight.
    pending_bound integer not null,
    primary key (consumer_id, epoch, read_to_n)
);

-- A row says up to which time a consumer's expired leases and due retries were swept up. Insert-only, as position.
create table postbus_data.sweep_state (
    consumer_id integer not null,
    epoch integer not null,
    swept_to timestamptz not null,
    -- When a sweep last looked at all times, and when one last looked some seconds back.
    full_sweep_at timestamptz not null,
    wide_sweep_at timestamptz not null,
    -- The sum of the consumer's positions then (see position_sum), and how many messages a second it had been given before.
    position_sum bigint not null,
    delivery_rate integer not null,
    primary key (consumer_id, epoch, swept_to)
);

-- A row says when a consumer with expire_after was last used. Insert-only, as position.
create table postbus_data.consumer_use (
    consumer_id integer not null,
    epoch integer not null,
    used_at timestamptz not null,
    -- The sum of its positions then.
    position_sum bigint not null,
    primary key (consumer_id, epoch, used_at)
);

-- A row is one delivery of a batch of one partition, until it is acked, nacked or expires. It names its messages; which of them are settled
-- already is in the table settled.
create table postbus_data.lease (
    token bigint not null,
    -- Extending some messages of a lease moves them to a piece of their own; the first piece, 0, remembers that there are others.
    piece integer not null default 0,
    is_split boolean not null default false,
    consumer_id integer not null,
    epoch integer not null,
    partition integer not null,
    seqs bigint[] not null,
    -- In order "key": the key of each message.
    keys text[] collate "C",
    -- Which delivery of each message this is; null when it is the first of all.
    attempts integer[],
    received_at timestamptz not null,
    deadline timestamptz not null,
    -- The table history is told what becomes of it.
    has_history boolean not null default false,
    primary key (token, piece)
);

-- A lease lives for moments: to compress the seqs of a large one takes longer than to write them.
alter table postbus_data.lease alter column seqs set storage external;

-- The leases of a consumer that have expired, and how many there are in all. Who looks for a token writes consumer_id + 0: when the table was
-- last analyzed with few rows in it, this index looks as good as the key, and would lead through all leases.
create index lease_deadline on postbus_data.lease (consumer_id, deadline);

-- A row is a message of a lease that was acked or nacked one by one. Inserted beside the lease instead of updated into it, so that
-- two workers that ack parts of a batch do not wait for each other and an open ack does not hold up a heartbeat.
create table postbus_data.settled (
    token bigint not null,
    seq bigint not null,
    primary key (token, seq)
);

-- A row is a message that failed (was nacked, or its lease expired) and waits for its time to be delivered again.
create table postbus_data.waiting (
    consumer_id integer not null,
    partition integer not null,
    seq bigint not null,
    -- How many times it was delivered.
    attempts integer not null,
    due_at timestamptz not null,
    reason text,
    failed_at timestamptz not null default clock_timestamp(),
    -- In order "key", what it holds back.
    key text collate "C",
    -- In order "partition" the first one that waits decides whether the partition goes on.
    primary key (consumer_id, partition, seq)
);

-- What is due. Here and below + 0, so that only who means it uses it: with few rows every index looks as good as the key.
create index waiting_due on postbus_data.waiting ((consumer_id + 0), due_at);

-- A row is a message that, in order "key", came up while its key was in flight or had failed: it waits behind it. Written and deleted under the
-- partition's mutex only, and read from position.parked_from on.
create table postbus_data.parked (
    consumer_id integer not null,
    epoch integer not null,
    partition integer not null,
    seq bigint not null,
    key text collate "C" not null,
    primary key (consumer_id, epoch, partition, seq)
);

-- A row is a message to be delivered again now: the redelivery log, read by position like a stream. The sweeper numbers its rows under a
-- mutex, so a reader passes none that commits late.
create table postbus_data.due (
    consumer_id integer not null,
    epoch integer not null,
    n bigint not null,
    partition integer not null,
    seq bigint not null,
    attempts integer not null,
    primary key (consumer_id, epoch, n)
);

-- A row is a message that a consumer gave up, with a copy of it.
create table postbus_data.dead_letter (
    consumer_id integer not null,
    seq bigint not null,
    partition integer not null,
    key text collate "C",
    data text,
    bytes bytea,
    headers jsonb,
    published_at timestamptz,
    attempts integer not null,
    reason text,
    died_at timestamptz not null default clock_timestamp(),
    primary key (consumer_id, seq)
);

-- In order "key" with on_dead = hold: the keys of a partition that are held.
create index dead_letter_partition on postbus_data.dead_letter ((consumer_id + 0), partition);

-- Dead letters past their retention.
create index dead_letter_died on postbus_data.dead_letter ((consumer_id + 0), died_at);

-- A row is what became of a delivery: of a batch that was acked, or of a single message that failed. Only of consumers that keep a history.
create table postbus_data.history (
    consumer_id integer not null,
    partition integer not null,
    -- The lowest of seqs.
    first_seq bigint not null,
    seqs bigint[] not null,
    -- Which delivery of each message it was; null when it was the first of all.
    attempts integer[],
    received_at timestamptz not null,
    finished_at timestamptz not null default clock_timestamp(),
    -- acked, failed or dead.
    outcome text collate "C" not null,
    reason text
);

-- It has no key; where somebody publishes all tables of the database, rows can be deleted all the same.
alter table postbus_data.history replica identity full;

-- The newest, and what is old enough to go.
create index history_finished on postbus_data.history (consumer_id, finished_at);

-- What the log has to keep for it, and the failures of a message.
create index history_first_seq on postbus_data.history (consumer_id, first_seq);

-- A row is a worker of a group, for as long as it is heard of.
create table postbus_data.group_worker (
    consumer_id integer not null references postbus_data.consumer on delete cascade,
    worker text collate "C" not null,
    joined_at timestamptz not null default clock_timestamp(),
    -- It is taken for dead after this.
    expires_at timestamptz not null,
    primary key (consumer_id, worker)
);

-- A row says which worker of a group reads a partition.
create table postbus_data.group_owner (
    consumer_id integer not null references postbus_data.consumer on delete cascade,
    partition integer not null,
    worker text collate "C" not null,
    primary key (consumer_id, partition)
);

-- A row is one consumer: a named reader of a stream. The tables below hold what it has read and what it holds, by its id.
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
    -- Null: no limit.
    max_deliver integer,
    -- How long a message waits after its first, second, … failure; the last delay repeats. With a factor, backoff[1] grows
    -- by it at each failure, up to the cap. jitter 0.2 makes each delay up to 20 % shorter or longer.
    backoff interval[] not null,
    backoff_factor double precision,
    backoff_cap interval,
    backoff_jitter double precision not null,
    -- Null: indefinitely.
    retain_dead interval,
    -- In order "key": how many messages of a key a batch may hold (null: no limit), how many messages may be parked, and
    -- whether a dead letter lets its key continue (continue) or holds it (hold).
    max_per_key integer,
    max_waiting integer not null,
    on_dead text collate "C" not null,
    -- Which messages it wants; null accepts all. The regular expression is made from the pattern. A message must have all
    -- of filter_headers, and none of the one-pair objects of filter_headers_not.
    filter_key_pattern text collate "C",
    filter_key_regex text collate "C",
    filter_headers jsonb,
    filter_headers_not jsonb[],
    filter_data jsonpath,
    -- Whether a message whose time to live is over is skipped (skip) or becomes a dead letter (bury).
    on_expired text collate "C" not null,
    -- The stream keeps every message that it has not finished.
    keep_unread boolean not null default false,
    -- It is removed when nobody has received from it for this long; null: never.
    expire_after interval,
    -- How long the outcome of each delivery is remembered; null: not at all.
    keep_history interval,
    -- It is read by position: claim, fetch, commit.
    is_group boolean not null default false,
    paused boolean not null default false,
    -- Seeking begins a new epoch: positions, leases and retries of an older epoch no longer count.
    epoch integer not null default 1,
    -- Partitions without a position are read from above this seq.
    start_after bigint not null,
    -- The partitions it reads: base … base + count - 1. After a change of their number they are older than the ones
    -- publishers write to, until it has read them to their end; see change_layout.
    partition_base integer not null,
    partition_count integer not null,
    created_at timestamptz not null default clock_timestamp(),
    -- A copy of each dead letter is published to this stream; null: to none.
    dead_letters_to text collate "C",
    -- A level rises by one for each such interval that its first message has waited; null: never.
    ageing interval,
    -- Its channels take turns.
    fair boolean not null default false,
    -- It receives by claim_channels: it is fair, or its stream has had limits of channels. Stays true.
    by_channel boolean not null default false,
    -- Its messages need no decisions: no filter, history, hold or limit per key, no turns or limits of channels. Only such consumers receive by the fast
    -- path.
    is_plain boolean generated always as (
        not paused
        and not by_channel
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

-- A row says how far a consumer has read a partition: up to read_to_seq. Insert-only: under the partition's mutex, a claim
-- inserts the next row and deletes the last one. A reader takes the right edge of the index, however many dead rows lie to the
-- left of it.
create table postbus_data.position (
    consumer_id integer not null,
    epoch integer not null,
    partition integer not null,
    read_to_seq bigint not null,
    -- The horizon last seen: up to it, no look at pg_locks is needed.
    horizon bigint not null,
    -- An upper bound on how many messages of the partition are in flight.
    pending_bound integer not null,
    -- The segment that holds everything published above read_to_seq, while the layout register still names it; 0: unknown.
    segment integer not null default 0,
    -- Like pending_bound and pending_since, of all levels together, with the partition of the default level.
    -- In the orders "key" and "partition": the leases that were in flight after the claim. There are no others. Of a consumer by channel it is empty and
    -- not null, see channel_position.
    leases bigint[],
    -- In order "key": the lowest parked seq (null if none is), and how many are parked.
    parked_from bigint,
    parked_count integer not null default 0,
    -- How many messages were skipped because their time to live was over.
    expired_count bigint not null default 0,
    -- About how many messages were gone from the stream before the consumer reached them.
    missed_count bigint not null default 0,
    -- In order "none": no lease in flight of the partition's first deliveries ends before this; null: unknown. See
    -- count_in_flight.
    pending_since timestamptz,
    primary key (consumer_id, epoch, partition, read_to_seq)
);

-- A row says how far a consumer has read its redelivery log, the table due. Insert-only, like position.
create table postbus_data.redelivery_position (
    consumer_id integer not null,
    epoch integer not null,
    read_to_n bigint not null,
    -- An upper bound on how many redelivered messages are in flight.
    pending_bound integer not null,
    -- Each level has a redelivery log; see lane_of.
    lane integer not null default 0,
    primary key (consumer_id, epoch, lane, read_to_n)
);

-- A row says how many of the urgent messages of its stream, by the sequence that counts them, a consumer has taken all of, up to which seq. Insert-only,
-- like position.
create table postbus_data.urgent_position (
    consumer_id integer not null,
    epoch integer not null,
    read_to_count bigint not null,
    read_to_seq bigint not null,
    primary key (consumer_id, epoch, read_to_count)
);

-- A row says up to which time a consumer's expired leases and due retries were swept. Insert-only, like position.
create table postbus_data.sweep_state (
    consumer_id integer not null,
    epoch integer not null,
    swept_to timestamptz not null,
    -- When a sweep last covered all times, and when one last looked a few seconds back.
    full_sweep_at timestamptz not null,
    wide_sweep_at timestamptz not null,
    -- The sum of the consumer's positions then (see position_sum), and how many messages per second it had received before.
    position_sum bigint not null,
    delivery_rate integer not null,
    -- How many deliveries have ended in this epoch because their lease expired.
    timed_out_count bigint not null default 0,
    primary key (consumer_id, epoch, swept_to)
);

-- A row says when a consumer with expire_after was last used. Insert-only, like position.
create table postbus_data.consumer_use (
    consumer_id integer not null,
    epoch integer not null,
    used_at timestamptz not null,
    -- The sum of its positions then.
    position_sum bigint not null,
    primary key (consumer_id, epoch, used_at)
);

-- A row is one delivery of a batch from one partition, until it is acked or nacked or the lease expires. It lists its
-- messages; the table settled has those that are settled already.
create table postbus_data.lease (
    token bigint not null,
    -- Extending some messages of a lease moves them to a piece of their own; the first piece, 0, records that there are
    -- others.
    piece integer not null default 0,
    is_split boolean not null default false,
    consumer_id integer not null,
    epoch integer not null,
    partition integer not null,
    seqs bigint[] not null,
    -- In order "key": the key of each message.
    keys text[] collate "C",
    -- The attempt of each message; null when all are first deliveries.
    attempts integer[],
    received_at timestamptz not null,
    deadline timestamptz not null,
    -- Its outcome is recorded in the table history.
    has_history boolean not null default false,
    -- A message of it has a row in the table saved, which an ack removes.
    has_saved boolean not null default false,
    primary key (token, piece)
);

-- A lease lives for moments: compressing the seqs of a large one would take longer than writing them.
alter table postbus_data.lease alter column seqs set storage external;

-- To find expired leases of a consumer, and to count its leases. A query by token must say consumer_id + 0: if the table was
-- last analyzed with few rows, the planner rates this index as good as the primary key, and would scan all leases.
create index lease_deadline on postbus_data.lease (consumer_id, deadline);

-- A row is a message of a lease that was acked or nacked individually. It is inserted beside the lease and not updated into
-- it, so that two workers that ack parts of a batch do not wait for each other, and an open ack does not block a heartbeat.
create table postbus_data.settled (
    token bigint not null,
    seq bigint not null,
    primary key (token, seq)
);

-- A row is a message that failed (it was nacked, or its lease expired) and waits until it is due for redelivery.
create table postbus_data.waiting (
    consumer_id integer not null,
    partition integer not null,
    seq bigint not null,
    -- How many deliveries it has had.
    attempts integer not null,
    due_at timestamptz not null,
    reason text,
    failed_at timestamptz not null default clock_timestamp(),
    -- In order "key": the key that it holds.
    key text collate "C",
    -- The lease that has expired: until the message is given out again, a late ack of it counts.
    token bigint,
    -- In order "partition", the first waiting message decides whether the partition continues.
    primary key (consumer_id, partition, seq)
);

-- To find retries that are due. Here and below the index is on consumer_id + 0, so that only queries that say so use it: with
-- few rows, the planner rates every index as good as the primary key.
create index waiting_due on postbus_data.waiting ((consumer_id + 0), due_at);

-- To find messages of an expired lease.
create index waiting_token on postbus_data.waiting (token) where token is not null;

-- A row is a message that was deferred, from its first deferral until the consumer has finished it.
create table postbus_data.saved (
    consumer_id integer not null,
    seq bigint not null,
    -- How often it was deferred.
    deferrals integer not null,
    -- What its handlers saved with it: a JSON value or bytes, or neither.
    state json,
    bytes bytea,
    saved_at timestamptz not null default clock_timestamp(),
    primary key (consumer_id, seq)
);

-- A row is a message that, in order "key", was reached while its key was in flight or had failed, and waits behind it. Written
-- and deleted only under the partition's mutex, and read from position.parked_from on.
create table postbus_data.parked (
    consumer_id integer not null,
    epoch integer not null,
    partition integer not null,
    seq bigint not null,
    key text collate "C" not null,
    primary key (consumer_id, epoch, partition, seq)
);

-- A row is a message that is due for redelivery: the redelivery log, read by position like a stream. The sweeper numbers its
-- rows under a mutex, so a reader misses no row that commits late.
create table postbus_data.due (
    consumer_id integer not null,
    epoch integer not null,
    n bigint not null,
    partition integer not null,
    seq bigint not null,
    attempts integer not null,
    -- As in waiting.
    token bigint,
    -- Each level has a log of its own; see lane_of.
    lane integer not null default 0,
    -- Of a consumer by channel: the channel whose turn it comes in. Its lane is below 0, see channel_lane.
    channel text collate "C",
    primary key (consumer_id, epoch, lane, n)
);

-- To find the retries of a channel.
create index due_channel on postbus_data.due ((consumer_id + 0), epoch, channel, n) where channel is not null;

-- To find a message by its seq.
create index due_seq on postbus_data.due ((consumer_id + 0), seq);

-- To find messages of an expired lease.
create index due_token on postbus_data.due (token) where token is not null;

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
    -- As in waiting, and the epoch of that lease.
    token bigint,
    epoch integer,
    primary key (consumer_id, seq)
);

-- In order "key" with on_dead = hold: to find the keys of a partition that are held.
create index dead_letter_partition on postbus_data.dead_letter ((consumer_id + 0), partition);

-- To find dead letters past their retention.
create index dead_letter_died on postbus_data.dead_letter ((consumer_id + 0), died_at);

-- To find messages of an expired lease.
create index dead_letter_token on postbus_data.dead_letter (token) where token is not null;

-- A row is the outcome of a delivery: of a batch that was acked, or of one message that failed. Only for consumers with
-- keep_history.
create table postbus_data.history (
    consumer_id integer not null,
    partition integer not null,
    -- The lowest of seqs.
    first_seq bigint not null,
    seqs bigint[] not null,
    -- The attempt of each message; null when all were first deliveries.
    attempts integer[],
    received_at timestamptz not null,
    finished_at timestamptz not null default clock_timestamp(),
    -- acked, failed or dead.
    outcome text collate "C" not null,
    reason text
);

-- The table has no key. Rows can be deleted even where a publication includes all tables.
alter table postbus_data.history replica identity full;

-- To find the newest entries, and those old enough to delete.
create index history_finished on postbus_data.history (consumer_id, finished_at);

-- To find what the log must keep for the history, and the failures of a message.
create index history_first_seq on postbus_data.history (consumer_id, first_seq);

-- A row is a live worker of a group: one that has called join_group within its session.
create table postbus_data.group_worker (
    consumer_id integer not null references postbus_data.consumer on delete cascade,
    worker text collate "C" not null,
    joined_at timestamptz not null default clock_timestamp(),
    -- It counts as dead after this.
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

-- Postbus, the whole install in one file: psql -v ON_ERROR_STOP=1 -f install.sql
-- Made from tables/ and functions/ by `make generate`; do not edit.

set client_encoding = 'UTF8';
begin;

-- postbus: the functions that users call. postbus_data: all tables, and internal functions.
do $$
begin
    -- Other encodings cannot store most messages, and in SQL_ASCII the meaning of bytes is unknown.
    if getdatabaseencoding() <> 'UTF8' then
        raise exception using
            errcode = 'PB505',
            message = format('the encoding of database "%s" is %s, and Postbus needs UTF8', current_database(), getdatabaseencoding()),
            hint = 'make another, and name that: create database postbus encoding ''UTF8'' template template0';
    end if;
end
$$;

create schema postbus;
create schema postbus_data;

-- A row is one numbered step that this database has taken, in a fresh install (which takes all of them at once) or an upgrade.
create table postbus_data.migration (
    number integer primary key,
    name text not null,
    applied_at timestamptz not null default clock_timestamp()
);

-- The one row has a digest of the functions' text, so that the library can compare code and database when it connects.
create table postbus_data.installation (
    singleton boolean primary key default true check (singleton),
    functions_digest text not null
);

-- Beside each stream stand, named by its id:
--   postbus_data.seq_<id>      the sequence that numbers its messages
--   postbus_data.layout_<id>   a sequence used as a register: which segment publishers write to and how keys map to partitions.
--                              Its value is read live, whatever the reader's snapshot (a table row would not be).
--   postbus_data.urgent_<id>   a sequence that counts how often messages of a higher level than the default were published
--   postbus_data.log_<id>_<n>  its segments
--   postbus_data.publish_<id>, postbus_data.publish_many_<id>
--                              functions that publish to it; see functions/message/internal/create_publish_functions.sql
--   postbus_data.ack_and_receive_<id>
--                              a function that receives from it; see functions/delivery/internal/create_receive_function.sql
--   postbus_data.ack_<id>      a function that acks its deliveries; see functions/delivery/internal/create_ack_function.sql
--   postbus_data.dedup_<id>    with a dedup_window: a register like layout_<id>, which names the table that takes message ids,
--                              dedup_<id>_<n>
--   postbus_data.state_<id>    with one_message_per_key: which version of each key is current
-- Ids are never used again, so an object left behind by one stream cannot be mistaken for another's.

-- A row is one stream, with its settings. check_stream has their ranges. Its sequences, functions and log tables have its id in their names.
create table postbus_data.stream (
    -- Publishers' locks use 2^30 + id as their class; see functions/horizon/internal/publisher_lock_class.sql.
    id integer generated always as identity (maxvalue 536870911) primary key,
    name text collate "C" not null unique,
    data_type text collate "C" not null,
    max_message_bytes integer not null,
    -- The log rolls to a new segment when the newest one is this large or this old.
    segment_bytes bigint not null,
    segment_age interval not null,
    -- Retention; null sets no limit. Messages older than retain_up_to are evicted; those younger than retain_at_least stay,
    -- whatever the limits say. until_acked drops what all consumers have finished. At max_messages or max_storage the
    -- oldest are evicted (evict) or new ones refused (refuse).
    retain_up_to interval,
    retain_at_least interval,
    max_messages bigint,
    max_storage bigint,
    until_acked boolean not null default false,
    when_full text collate "C" not null default 'evict',
    -- A message whose id was published within this time is not published again; null: ids are not checked.
    dedup_window interval,
    -- A new message of a key replaces the one before: consumers get only its latest version. Unchanged data is ignored,
    -- unless process_unmodified.
    one_message_per_key boolean not null default false,
    process_unmodified boolean not null default false,
    -- New messages are refused until maintenance finds room.
    is_full boolean not null default false,
    -- Messages below this seq were purged; their segments are dropped when no live message is left in them.
    start_seq bigint not null default 0,
    -- Messages below this seq were purged on request, not by retention: nobody gets them again.
    purged_seq bigint not null default 0,
    -- Maintenance should begin a new segment, so that a segment whose messages are all gone can be dropped.
    roll_due boolean not null default false,
    created_at timestamptz not null default clock_timestamp(),
    -- How many leading tokens of a key name its channel; null: there are no channels. The channel's hash picks the partition, instead of the key's.
    channel_tokens integer
);

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

-- A row is a table of a stream's message ids, postbus_data.dedup_<stream id>_<number>. New ids go to the table that the
-- register dedup_<stream id> names. The one before it is still searched while it may hold ids within the window. Old tables are
-- dropped, so ids are never deleted one by one.
create table postbus_data.dedup (
    stream_id integer not null references postbus_data.stream on delete cascade,
    number integer not null,
    -- The register may name a table only after the transaction that prepared it has committed.
    prepared_by xid8 not null default pg_current_xact_id(),
    begun_at timestamptz,
    -- Publishers that may still write here hold a horizon lock at or below this. Null until the register has moved on.
    rolled_at_seq bigint,
    -- Since when nobody can write here.
    sealed_at timestamptz,
    primary key (stream_id, number)
);

-- A row is a recurring schedule: a message that is published at the times of a cron expression, or of an interval. Whoever runs Python
-- fills in the next times, as rows of scheduled; SQL publishes them. No process leads.
create table postbus_data.schedule (
    id integer generated always as identity primary key,
    stream_id integer not null references postbus_data.stream on delete cascade,
    name text collate "C" not null,
    -- One of the two: a cron expression in a time zone, or an interval whose grid begins at created_at.
    cron text,
    every interval,
    time_zone text not null,
    key text collate "C",
    data text,
    bytes bytea,
    headers jsonb,
    ttl interval,
    -- Of times that were missed: publish the latest, all (at most max_catch_up) or none (skip).
    catch_up text collate "C" not null check (catch_up in ('latest', 'skip', 'all')),
    max_catch_up integer not null check (max_catch_up between 1 and 1000),
    paused boolean not null default false,
    created_at timestamptz not null default clock_timestamp(),
    -- Counts changes, so that nobody fills in times of a former version.
    version integer not null default 1,
    -- All times up to here are filled in.
    filled_until timestamptz not null,
    -- Why times cannot be filled in; null: they can.
    problem text,
    priority integer not null default 4,
    unique (stream_id, name)
);

-- A row is a message that waits outside the log until its time: one row, however many consumers the stream has. When it is due
-- it is published and gets its seq. The content is stored as given, already checked.
create table postbus_data.scheduled (
    stream_id integer not null references postbus_data.stream on delete cascade,
    id bigint generated always as identity,
    deliver_at timestamptz not null,
    scheduled_at timestamptz not null default clock_timestamp(),
    ttl interval,
    key text collate "C",
    data text,
    bytes bytea,
    headers jsonb,
    -- A time of a recurring schedule, which has the content.
    schedule_id integer references postbus_data.schedule on delete cascade,
    occurrence timestamptz,
    priority integer not null default 4,
    primary key (stream_id, id)
);

-- To find the messages due next.
create index scheduled_due on postbus_data.scheduled (stream_id, deliver_at, id);
-- Each time of a schedule is filled in once, and found by its schedule.
create unique index scheduled_occurrence on postbus_data.scheduled (schedule_id, occurrence) where schedule_id is not null;

-- A row is a message that a recurring schedule has published, by its time or on request (occurrence is null). The last twenty stay.
create table postbus_data.schedule_run (
    schedule_id integer not null references postbus_data.schedule on delete cascade,
    n bigint generated always as identity,
    occurrence timestamptz,
    published_at timestamptz not null default clock_timestamp(),
    seq bigint not null,
    primary key (schedule_id, n)
);

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

-- A row limits the channels of a stream whose names match a pattern; see set_channel. Of several that match, the most specific counts.
create table postbus_data.channel (
    stream_id integer not null references postbus_data.stream on delete cascade,
    pattern text collate "C" not null,
    -- Null when the pattern is the name of one channel.
    regex text collate "C",
    -- Sorts patterns with wildcards, the most specific first.
    rank text collate "C" not null,
    -- How many of a channel's messages may be leased by a consumer at once; null: any number.
    max_concurrency integer,
    -- How many may be delivered in each such time, and how many at once after a pause; null: any number.
    max_rate integer,
    per interval not null,
    burst integer not null,
    -- How many quanta a turn of the channel has.
    weight integer not null,
    paused boolean not null,
    primary key (stream_id, pattern)
);

-- To find the most specific pattern with wildcards.
create index channel_rank on postbus_data.channel (stream_id, rank) where regex is not null;

-- A row says that a channel still has messages for a consumer above after_seq and up to the position of its partition, or retries that are due. There is
-- at most one for each channel; it is written and deleted only under the partition's mutex. A position passes over the channel's messages while there is one.
create table postbus_data.turn (
    consumer_id integer not null,
    epoch integer not null,
    partition integer not null,
    channel text collate "C" not null,
    -- The order of turns. It only grows, and channel_position.turned_to says up to where turns were taken: so dead rows are never walked.
    n bigint not null,
    after_seq bigint not null,
    -- What is left of its turn, if a receive was full before the end of it.
    quantum_left integer,
    -- When a limit lets it take a turn again: null when it may, '-infinity' when one of its messages is finished, 'infinity' when it is resumed.
    ready_at timestamptz,
    -- Which limit: rate, concurrency or paused.
    limited_by text collate "C",
    -- With '-infinity': how many messages in flight are too many.
    max_concurrency integer,
    primary key (consumer_id, epoch, partition, channel, n)
);

-- The channels that may take turns, in their order. Only queries that say consumer_id + 0 use this index and the next.
create index turn_next on postbus_data.turn ((consumer_id + 0), epoch, partition, n) where ready_at is null;

-- The channels that a limit holds.
create index turn_resting on postbus_data.turn ((consumer_id + 0), epoch, partition, ready_at, n) where ready_at is not null;

-- A row says, beside the position of a partition, where a consumer by channel is with its turns. Insert-only, like position, by a number that grows with each
-- claim: a position that does not move would be written again and again with the same key.
create table postbus_data.channel_position (
    consumer_id integer not null,
    epoch integer not null,
    partition integer not null,
    n bigint not null,
    -- The leases that were in flight after the claim. There are no others.
    leases bigint[] not null,
    -- Up to which n turns were taken, and the last n that was given.
    turned_to bigint not null,
    last_turn bigint not null,
    -- Channels that had to rest until this time have a turn again.
    rested_to timestamptz not null,
    -- A receive of one message serves a channel that waits, and not a new one.
    turns_first boolean not null,
    primary key (consumer_id, epoch, partition, n)
);

-- A row says how far a channel with a rate has used it up for a consumer. Insert-only, like position. tat is the theoretical arrival time of GCRA: when the
-- channel would be as fresh as if it had never been used.
create table postbus_data.channel_pace (
    consumer_id integer not null,
    channel text collate "C" not null,
    tat timestamptz not null,
    primary key (consumer_id, channel, tat)
);

-- A row is up to 10,000 messages that one attempt of a Spark task wants to publish, until its batch commits or is given up.
-- One row per message would have to be deleted one by one. Unlogged: if Postgres crashes and loses rows, the batch finds them
-- missing when it is published, fails and is run again.
create unlogged table postbus_data.spark_staging (
    -- A task that ran twice has two attempts; the batch names one of them.
    attempt uuid not null,
    chunk integer not null,
    -- The stream and the writer, as stream/writer: a writer may write to several streams.
    writer text collate "C" not null,
    batch_id bigint not null,
    message_count integer not null,
    -- Parallel arrays, as publish_many takes them. data is text data.
    keys text[],
    data text[],
    headers jsonb[],
    bytes bytea[],
    -- Null when no message has one.
    deliver_at timestamptz[],
    staged_at timestamptz not null default clock_timestamp(),
    -- JSON data.
    contents json[],
    -- The hash of each key, which decides its partition: see partition_of, which takes it modulo the partition count.
    hashes integer[],
    -- Instead of all these: rows of a segment in the format of COPY, and the stream for which they were checked.
    encoded_for integer,
    encoded bytea,
    -- Null when no message has one.
    priorities integer[],
    primary key (attempt, chunk)
);

-- Compressing them would take longer than writing them, and they are deleted at once.
alter table postbus_data.spark_staging
    alter column keys set storage external,
    alter column data set storage external,
    alter column headers set storage external,
    alter column bytes set storage external,
    alter column contents set storage external,
    alter column hashes set storage external,
    alter column encoded set storage external,
    alter column priorities set storage external;

-- To find leftovers of earlier batches of a writer.
create index spark_staging_writer on postbus_data.spark_staging (writer, batch_id);

-- A row is the last batch that a writer has published to a stream. Batch ids grow, so all lower ones are published too.
create table postbus_data.spark_writer (
    stream_id integer not null references postbus_data.stream on delete cascade,
    writer text collate "C" not null,
    -- The streaming query whose batches are counted; null for a writer of batches.
    query text,
    batch_id bigint not null,
    -- The name was generated for one batch and will not be used again.
    is_once boolean not null,
    message_count bigint not null,
    published_at timestamptz not null default clock_timestamp(),
    -- Of all its batches.
    total_count bigint not null default 0,
    primary key (stream_id, writer)
);

-- To find writers that will not be used again.
create index spark_writer_once on postbus_data.spark_writer (published_at) where is_once;

-- A row is one pipeline: a Spark job that reads or writes a stream, under the name by which a later run continues it.
create table postbus_data.pipeline (
    name text collate "C" primary key,
    kind text collate "C" not null,
    stream_id integer not null references postbus_data.stream on delete cascade,
    -- The consumer whose lag is the pipeline's; null when the pipeline has an end.
    consumer text collate "C",
    options jsonb not null,
    state text collate "C" not null check (state in ('running', 'done', 'stopped', 'failed')),
    -- The newest run. An older run that is still alive finds out here that it was replaced.
    run uuid not null,
    -- Messages of this run, and of all runs.
    run_count bigint not null default 0,
    message_count bigint not null default 0,
    -- About how many messages this run will process, if that is known.
    total_estimate bigint,
    position_seq bigint,
    -- The plan of a pipeline that has an end, decided when it first began.
    plan jsonb,
    last_error text,
    started_at timestamptz not null default clock_timestamp(),
    noted_at timestamptz not null default clock_timestamp(),
    ended_at timestamptz,
    -- Of all runs: what could not be published and is in another stream, and rows that a watermark dropped.
    aside_count bigint not null default 0,
    late_count bigint not null default 0
);

-- A row is the archive of a stream: files in a lake that hold its messages from start_after (exclusive) to position_seq.
create table postbus_data.archive (
    stream_id integer primary key references postbus_data.stream on delete cascade,
    -- The folder to which the paths of files are relative.
    root text not null,
    start_after bigint not null,
    position_seq bigint not null,
    created_at timestamptz not null default clock_timestamp(),
    -- With delta, the folder is also a Delta table, whose log follows the files listed here.
    format text collate "C" not null default 'parquet' check (format in ('parquet', 'delta'))
);

-- A row is one step of an archive: in the transaction that wrote this row, every message with after_seq < seq <= to_seq was
-- listed in files. Steps follow each other without a gap.
create table postbus_data.archive_batch (
    stream_id integer not null references postbus_data.archive on delete cascade,
    after_seq bigint not null,
    to_seq bigint not null check (to_seq > after_seq),
    message_count bigint not null,
    -- The messages were purged before they were archived.
    is_lost boolean not null,
    archived_at timestamptz not null default clock_timestamp(),
    primary key (stream_id, to_seq)
);

-- A row is a file of an archive. A file that is not listed here, or is marked as removed, does not count.
create table postbus_data.archive_file (
    id bigint generated always as identity primary key,
    stream_id integer not null references postbus_data.archive on delete cascade,
    path text collate "C" not null,
    bytes bigint not null,
    message_count bigint not null,
    first_seq bigint not null,
    last_seq bigint not null,
    first_published_at timestamptz not null,
    last_published_at timestamptz not null,
    added_at timestamptz not null default clock_timestamp(),
    -- Since then other files hold its messages, or retention has removed it. Readers that began earlier may still read it.
    removed_at timestamptz,
    unique (stream_id, path)
);

-- The files that hold a range of seqs.
create index archive_file_seq on postbus_data.archive_file (stream_id, last_seq) where removed_at is null;

-- A row says what a file holds of a partition. The checksum covers its messages and does not depend on their order.
create table postbus_data.archive_part (
    file_id bigint not null references postbus_data.archive_file on delete cascade,
    partition integer not null,
    first_seq bigint not null,
    last_seq bigint not null,
    message_count bigint not null,
    checksum bigint not null,
    primary key (file_id, partition)
);

-- A row is a file that a pipeline has taken, to publish its rows. The files of a step are read together and never change, so
-- that another run of the step publishes the same messages.
create table postbus_data.ingest_file (
    pipeline text collate "C" not null references postbus_data.pipeline on delete cascade,
    -- The Spark writer under which the steps are published, and the number of the step.
    writer text collate "C" not null,
    step bigint not null,
    path text collate "C" not null,
    -- As they were when the file was taken.
    bytes bigint not null,
    modified_at timestamptz not null,
    taken_at timestamptz not null default clock_timestamp(),
    done_at timestamptz,
    -- It was deleted before it was read.
    is_gone boolean not null default false,
    -- When it was first seen with another size or time. The new content is not read.
    changed_at timestamptz,
    primary key (writer, path)
);

-- The files of a step.
create index ingest_file_step on postbus_data.ingest_file (writer, step);

-- A row is a snapshot of a source, at which one run of a backfill read its ranges.
create table postbus_data.backfill_snapshot (
    id bigint generated always as identity primary key,
    pipeline text collate "C" not null references postbus_data.pipeline on delete cascade,
    run uuid not null,
    -- The transactions of the source that the snapshot sees.
    snapshot pg_snapshot not null,
    -- The source's WAL position just before the snapshot.
    wal_lsn pg_lsn not null,
    opened_at timestamptz not null default clock_timestamp(),
    -- Since then no range may begin at this snapshot.
    closed_at timestamptz
);

-- A row is a range of a backfill's key: rows with after_key < key <= to_key in the order of the source. Ranges are decided
-- when the backfill first begins, so every row of the source always belongs to one range.
create table postbus_data.backfill_range (
    pipeline text collate "C" not null references postbus_data.pipeline on delete cascade,
    -- Names one execution of the backfill; running it again has another name.
    writer text collate "C" not null,
    number integer not null,
    -- The values of the key columns as text. Null is before the first row or after the last.
    after_key text[],
    to_key text[],
    -- The range is instead of the rows that have no value in a column of the key.
    is_of_nulls boolean not null,
    -- Set by the transaction that published the range: its snapshot and counts. No foreign key: that transaction may run at
    -- the snapshot, which is older than its row.
    snapshot_id bigint,
    message_count bigint,
    bad_count bigint,
    done_at timestamptz,
    primary key (writer, number)
);

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

-- A row is a token that allows requests to the HTTP server. Only its SHA-256 is stored, not the token itself.
create table postbus_data.token (
    id integer generated always as identity primary key,
    name text collate "C" not null,
    -- The SHA-256 of the token, in hexadecimal.
    digest text collate "C" not null,
    -- Some of publish, consume, manage.
    scopes text[] collate "C" not null,
    -- Names of streams, in which "*" stands for any characters.
    streams text[] collate "C" not null,
    -- Requests per second; null: no limit.
    rate_limit double precision,
    created_at timestamptz not null default clock_timestamp(),
    -- Null: never.
    expires_at timestamptz,
    revoked_at timestamptz,
    -- Of a key pair for clients of AWS. The secret is stored as it is, since a signature can only be verified by it; a revoked token has none.
    access_key_id text collate "C",
    aws_secret text
);

-- To find the token of a request.
create unique index token_digest on postbus_data.token (digest);

-- To find the token of a signed request.
create unique index token_access_key on postbus_data.token (access_key_id) where access_key_id is not null;

-- What create_token, list_tokens and find_token return.
create type postbus.token_info as (
    id integer,
    name text,
    digest text,
    scopes text[],
    streams text[],
    rate_limit double precision,
    created_at timestamptz,
    expires_at timestamptz,
    revoked_at timestamptz
);

-- A row allows a role to publish to a stream, to consume it or to read it; a null stream means all streams.
create table postbus_data.stream_grant (
    stream_id integer references postbus_data.stream on delete cascade,
    role text collate "C" not null,
    may text collate "C" not null check (may in ('publish', 'consume', 'read')),
    unique nulls not distinct (stream_id, role, may)
);

-- As for history.
alter table postbus_data.stream_grant replica identity full;

-- The one row is the secret with which this database signs the names of callers, and by which functions recognize them.
create table postbus_data.caller_key (
    singleton boolean primary key default true check (singleton),
    secret bytea not null
);
insert into postbus_data.caller_key (secret)
values (sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())));

-- The caller of a function: a role, and a signature that only this database can make, valid in one transaction of one session.
-- Functions that act with the rights of their owner take it as their last argument, because to them the current user is that
-- owner. Omit the argument: its default is right.
create type postbus.caller as (
    role text,
    signature bytea
);

-- The caller, as seen by the role that selects from it. A view reads tables with its owner's rights but evaluates current_user
-- as the role that uses it. The signed text begins with parts of fixed length and ends with the secret, so that no signature
-- can be extended to that of another role.
create view postbus_data.current_caller with (security_barrier) as
select
    row(
        current_user::text,
        sha256(
            k.secret || int4send(pg_backend_pid()) || timestamptz_send(transaction_timestamp()) || convert_to(current_user::text, 'UTF8')
            || k.secret
        )
    )::postbus.caller as caller
from postbus_data.caller_key as k;

-- A row is the endpoint of a push consumer: its messages are sent there as HTTP requests. Any number of processes send for it.
create table postbus_data.push (
    consumer_id integer primary key references postbus_data.consumer on delete cascade,
    url text not null,
    -- Sent with each request: strings by name.
    headers jsonb not null,
    -- What a body holds: the data of a message (raw), with its type and time (standard), with its key (sequin), or of several (batch).
    mode text collate "C" not null check (mode in ('raw', 'standard', 'sequin', 'batch')),
    batch_size integer not null,
    timeout interval not null,
    -- How many requests a process has open at once.
    concurrency integer not null,
    -- Requests per second, of all processes together; null: no limit.
    max_rate double precision,
    -- How long a message waits after its first, second, … failure; the last repeats. Empty: as its order suggests.
    retry_schedule interval[] not null,
    -- Answers after which a message becomes a dead letter at once.
    permanent_statuses integer[] not null,
    keep_successes boolean not null,
    -- Why nothing is sent until it is resumed; null: it is sent.
    paused_reason text,
    created_at timestamptz not null default clock_timestamp(),
    -- Counts changes, so that processes notice them.
    version integer not null default 1
);

-- A row is a secret that the requests to an endpoint are signed with: the newest one, and older ones until they end.
create table postbus_data.push_secret (
    consumer_id integer not null references postbus_data.push on delete cascade,
    n integer not null,
    secret text not null,
    created_at timestamptz not null default clock_timestamp(),
    -- Null: no end.
    valid_until timestamptz,
    primary key (consumer_id, n)
);

-- A row says how an endpoint does: the newest one counts. Insert-only, like position: under the endpoint's mutex, a report inserts the
-- next row and deletes the last one.
create table postbus_data.push_state (
    consumer_id integer not null references postbus_data.push on delete cascade,
    n bigint not null,
    -- It rests until then, and then one process sends one request to find out more. Null: it does not rest.
    rests_until timestamptz,
    rest_reason text,
    -- How many rests in a row there were.
    rest_count integer not null default 0,
    -- The process that sends that one request says until then how it went.
    probe_until timestamptz,
    -- Requests and failures since the window began, which is a minute long.
    window_started_at timestamptz,
    window_requests integer not null default 0,
    window_failures integer not null default 0,
    -- Since the last success: the first messages that failed, and how often the endpoint could not be reached.
    failed_seqs bigint[] not null default '{}',
    unreachable_count integer not null default 0,
    first_failure_at timestamptz,
    last_failure_at timestamptz,
    last_success_at timestamptz,
    last_error text,
    -- With max_rate: when the next request has its turn.
    next_turn_at timestamptz,
    primary key (consumer_id, n)
);

-- A row is a test message that somebody has asked for and no process has sent yet.
create table postbus_data.push_test (
    consumer_id integer not null references postbus_data.push on delete cascade,
    id bigint generated always as identity,
    requested_at timestamptz not null default clock_timestamp(),
    primary key (consumer_id, id)
);

-- A row is an attempt to send a message, or a test. Days take turns in eight tables, so that nothing is deleted row by row: each is emptied
-- before its next turn, and an attempt is kept for six days at least.
create table postbus_data.push_attempt (
    -- The number of the day modulo 8.
    slot smallint not null,
    consumer_id integer not null,
    -- Null for a test.
    seq bigint,
    test_id bigint,
    attempt integer not null,
    attempted_at timestamptz not null,
    -- acked, failed, dead, returned (the attempt does not count), or test.
    outcome text collate "C" not null,
    -- Null: there was no answer.
    status integer,
    duration interval not null,
    error text,
    -- The address that it was sent to.
    address text,
    -- The first KiB of the answer.
    answer bytea
) partition by list (slot);

-- To find the newest attempts of an endpoint, and those of a message.
create index push_attempt_time on postbus_data.push_attempt (consumer_id, attempted_at);
create index push_attempt_seq on postbus_data.push_attempt (consumer_id, seq, attempted_at);

-- Attempts of every eighth day.
create table postbus_data.push_attempt_0 partition of postbus_data.push_attempt for values in (0);
-- Attempts of every eighth day.
create table postbus_data.push_attempt_1 partition of postbus_data.push_attempt for values in (1);
-- Attempts of every eighth day.
create table postbus_data.push_attempt_2 partition of postbus_data.push_attempt for values in (2);
-- Attempts of every eighth day.
create table postbus_data.push_attempt_3 partition of postbus_data.push_attempt for values in (3);
-- Attempts of every eighth day.
create table postbus_data.push_attempt_4 partition of postbus_data.push_attempt for values in (4);
-- Attempts of every eighth day.
create table postbus_data.push_attempt_5 partition of postbus_data.push_attempt for values in (5);
-- Attempts of every eighth day.
create table postbus_data.push_attempt_6 partition of postbus_data.push_attempt for values in (6);
-- Attempts of every eighth day.
create table postbus_data.push_attempt_7 partition of postbus_data.push_attempt for values in (7);

-- They have no key. Rows can be deleted even where a publication includes all tables.
alter table postbus_data.push_attempt_0 replica identity full;
alter table postbus_data.push_attempt_1 replica identity full;
alter table postbus_data.push_attempt_2 replica identity full;
alter table postbus_data.push_attempt_3 replica identity full;
alter table postbus_data.push_attempt_4 replica identity full;
alter table postbus_data.push_attempt_5 replica identity full;
alter table postbus_data.push_attempt_6 replica identity full;
alter table postbus_data.push_attempt_7 replica identity full;

-- The endpoint of a push consumer, without its secrets; see postbus.list_pushes.
create type postbus.push_info as (
    stream text,
    consumer text,
    url text,
    header_names text[],
    mode text,
    batch_size integer,
    timeout interval,
    concurrency integer,
    max_rate double precision,
    retry_schedule interval[],
    permanent_statuses integer[],
    keep_successes boolean,
    secret_count integer,
    -- active, resting or paused.
    state text,
    reason text,
    rests_until timestamptz,
    first_failure_at timestamptz,
    last_failure_at timestamptz,
    last_success_at timestamptz,
    last_error text,
    created_at timestamptz
);

-- An attempt to send a message; see postbus.push_attempts.
create type postbus.push_attempt as (
    seq bigint,
    test_id bigint,
    attempt integer,
    attempted_at timestamptz,
    outcome text,
    status integer,
    duration interval,
    error text,
    address text,
    answer bytea
);

-- A row is a webhook source: requests to /api/webhook/<name> become messages of a stream, once they are verified.
create table postbus_data.webhook_source (
    id integer generated always as identity primary key,
    name text collate "C" not null unique,
    stream_id integer not null references postbus_data.stream on delete cascade,
    -- Who sends, and so how a request is verified: standard, stripe, github, shopify, slack, hmac, basic, header or none.
    kind text collate "C" not null
        check (kind in ('standard', 'stripe', 'github', 'shopify', 'slack', 'hmac', 'basic', 'header', 'none')),
    -- Any of them verifies a request; several while one is replaced.
    secrets text[] not null,
    -- What else its kind needs, such as the name of a header.
    options jsonb not null,
    -- What the key of a message is made from.
    key_template text not null,
    -- Where the id of an event is: header:NAME, json:/POINTER or sha256. Null: where its kind has it.
    id_from text,
    -- Which headers go along, in lower case.
    keep_headers text[] not null,
    -- An event whose id was seen within the stream's dedup window is not published again.
    dedup boolean not null,
    max_body_bytes integer not null,
    -- Requests per second to a process; null: no limit.
    max_rate double precision,
    paused boolean not null default false,
    created_at timestamptz not null default clock_timestamp()
);

-- A row is a request that a webhook source refused. The last fifty stay.
create table postbus_data.webhook_refusal (
    source_id integer not null references postbus_data.webhook_source on delete cascade,
    n bigint generated always as identity,
    refused_at timestamptz not null default clock_timestamp(),
    status integer not null,
    reason text not null,
    -- How many were refused since the last row.
    refused_count integer not null,
    primary key (source_id, n)
);

-- A webhook source, without its secrets; see postbus.list_webhook_sources.
create type postbus.webhook_source_info as (
    name text,
    stream text,
    kind text,
    secret_count integer,
    options jsonb,
    key_template text,
    id_from text,
    keep_headers text[],
    dedup boolean,
    max_body_bytes integer,
    max_rate double precision,
    paused boolean,
    created_at timestamptz,
    -- The last ten, newest first: objects with refused_at, status, reason and refused_count.
    last_refusals jsonb
);

-- The one row says which process of the library does the upkeep, and when somebody last maintained the logs.
create table postbus_data.upkeep (
    singleton boolean primary key default true check (singleton),
    -- A name that the process has made up; null until one has taken the upkeep.
    holder uuid,
    -- When it last said that it goes on.
    held_at timestamptz,
    -- When `maintain` last looked after all streams, whoever called it; up to a minute earlier while there is a holder. Null: never.
    maintained_at timestamptz,
    created_at timestamptz not null default clock_timestamp()
);
insert into postbus_data.upkeep default values;

-- A row is a Postgres source: tables of some database whose changes a process of the library publishes to a stream.
create table postbus_data.source (
    id integer generated always as identity primary key,
    name text collate "C" not null unique,
    stream_id integer not null references postbus_data.stream,
    -- A secret, since it may have a password. Null: this database.
    url text,
    -- Where that leads to, for display.
    shown_url text,
    -- Patterns of schema.table, where * stands for any characters. Without a schema: tables on the search path.
    tables text[] not null,
    operations text[] not null,
    -- By schema.table: the columns that are published, and the condition for rows.
    columns jsonb not null,
    filters jsonb not null,
    key_template text not null,
    format text collate "C" not null check (format in ('sequin', 'sequin2024', 'debezium')),
    backfill boolean not null,
    slot text not null,
    publication text not null,
    -- Somebody else made the publication, which is used as it is.
    is_foreign_publication boolean not null,
    paused boolean not null default false,
    -- A truncate of each table is to be published before anything else: all rows come anew.
    empties boolean not null default false,
    -- Counts changes of the settings: a reader that knows a former version begins anew.
    version integer not null default 1,
    -- Counts slots: each begins a history of positions of its own. Zero: there is no slot yet.
    epoch integer not null default 0,
    -- The cluster in which the slot is, and the timeline on which it was last read.
    system_identifier text,
    timeline integer,
    created_at timestamptz not null default clock_timestamp()
);

-- To find the sources of a stream.
create index source_stream on postbus_data.source (stream_id);

-- A row says that all transactions which end at or before this place of the source's log are published. Whoever publishes inserts the next row
-- in the same transaction, and deletes the one before.
create table postbus_data.source_position (
    source_id integer not null references postbus_data.source on delete cascade,
    epoch integer not null,
    lsn pg_lsn not null,
    -- When the last of these transactions was committed; null before the first.
    committed_at timestamptz,
    stored_at timestamptz not null default clock_timestamp(),
    primary key (source_id, epoch, lsn)
);

-- A row is what the process that reads a source says about it, every second or two.
create table postbus_data.source_status (
    source_id integer primary key references postbus_data.source on delete cascade,
    -- A name that the reader has made up; null: nobody reads it.
    holder uuid,
    held_at timestamptz,
    state text collate "C" not null default 'starting',
    -- What is wrong, and what to do about it.
    problem text,
    remedy text,
    lag_bytes bigint,
    -- How old the newest change was when it was published, or how long the oldest one that is not has waited.
    lag_seconds double precision,
    wal_held_bytes bigint,
    -- Since the source was created.
    change_count bigint not null default 0,
    transaction_count bigint not null default 0,
    changes_per_second double precision,
    updated_at timestamptz not null default clock_timestamp()
);

-- A row is a table of a source, and how far its existing rows are published.
create table postbus_data.source_table (
    source_id integer not null references postbus_data.source on delete cascade,
    table_schema text not null,
    table_name text not null,
    backfill text collate "C" not null check (backfill in ('none', 'pending', 'running', 'paused', 'done', 'refused')),
    -- The key of the last row that is published, as text; null before the first.
    after_key text[],
    row_count bigint not null default 0,
    estimated_count bigint,
    problem text,
    started_at timestamptz,
    done_at timestamptz,
    primary key (source_id, table_schema, table_name)
);

-- A row is long work on a consumer that is done in steps, by whichever process does the upkeep: a redrive, a discard, a replay or a move.
create table postbus_data.task (
    id bigint generated always as identity primary key,
    consumer_id integer not null references postbus_data.consumer on delete cascade,
    kind text collate "C" not null check (kind in ('redrive', 'discard', 'replay', 'move')),
    -- Which messages; null does not restrict them.
    key_pattern text collate "C",
    reason_like text collate "C",
    to_stream text collate "C",
    from_seq bigint,
    to_seq bigint,
    from_time timestamptz,
    to_time timestamptz,
    -- The largest number of messages per second; null: as fast as it goes.
    rate double precision check (rate > 0),
    state text collate "C" not null default 'running' check (state in ('running', 'done', 'cancelled', 'failed')),
    -- How many messages were moved, of about so many.
    done_count bigint not null default 0,
    total_estimate bigint,
    -- Where a replay goes on.
    resume text,
    last_error text,
    created_by text not null,
    created_at timestamptz not null default clock_timestamp(),
    -- When a step was done last.
    noted_at timestamptz not null default clock_timestamp(),
    -- Up to this time the rate is used up.
    paced_at timestamptz not null default clock_timestamp(),
    ended_at timestamptz
);

-- To find those that run. There are few.
create index task_running on postbus_data.task (id) where state = 'running';
create index task_consumer on postbus_data.task (consumer_id);

-- A task as users see it. See list_tasks.
create type postbus.task_info as (
    id bigint,
    stream text,
    consumer text,
    kind text,
    state text,
    done_count bigint,
    total_estimate bigint,
    rate double precision,
    key_pattern text,
    reason_like text,
    to_stream text,
    last_error text,
    created_by text,
    created_at timestamptz,
    noted_at timestamptz,
    ended_at timestamptz
);

-- A row is a queue for clients of SQS: a name for a consumer, whose messages they receive. They send to its stream.
create table postbus_data.sqs_queue (
    id integer generated always as identity primary key,
    -- As SQS has it: 1 to 80 letters, digits, "-" and "_"; that of a FIFO queue ends in ".fifo".
    name text collate "C" not null unique,
    stream_id integer not null references postbus_data.stream on delete cascade,
    consumer_id integer not null unique references postbus_data.consumer on delete cascade,
    -- CreateQueue made its stream, so DeleteQueue drops it. Otherwise the consumer was there before and stays.
    owns_stream boolean not null,
    -- What ids of messages are made from, with their seqs: random, so that no other database makes the same.
    id_base uuid not null default gen_random_uuid(),
    -- Attributes that were set, by name: strings. What is not there has its default.
    attributes jsonb not null default '{}',
    tags jsonb not null default '{}',
    created_at timestamptz not null default clock_timestamp(),
    changed_at timestamptz not null default clock_timestamp(),
    purged_at timestamptz
);

-- Deleting a stream looks here.
create index sqs_queue_stream on postbus_data.sqs_queue (stream_id);

-- A queue for clients of SQS; see postbus.list_sqs_queues.
create type postbus.sqs_queue_info as (
    name text,
    stream text,
    consumer text,
    owns_stream boolean,
    attributes jsonb,
    tags jsonb,
    created_at timestamptz,
    changed_at timestamptz,
    purged_at timestamptz,
    -- For servers: what handles and ids of messages are made from, and what the stream can do.
    id integer,
    id_base text,
    data_type text,
    has_dedup boolean
);

set local check_function_bodies = off;

create or replace function postbus.current_caller()
returns postbus.caller
language plpgsql
stable
as $$
/*
The calling role, signed so that functions that act with their owner's rights can trust it. It is the default of their last
argument.

It runs with the caller's rights and settings. Whatever a caller changes about it only yields a signature that no function
accepts.
*/
begin
    return (select c.caller from postbus_data.current_caller as c);
end
$$;

create or replace function postbus_data.add_files(stream_id integer, files jsonb)
returns bigint
language plpgsql
volatile
as $$
/*
List files of an archive.

files    an array of objects: path, bytes, first_published_at, last_published_at, and parts, an array of objects that are rows
         of archive_part.

Returns  how many messages the files hold.
Touches  archive_file, archive_part (insert).
*/
declare
    file jsonb;
    new_id bigint;
    total bigint := 0;
    counted bigint;
begin
    for file in select f.value from jsonb_array_elements(files) as f loop
        insert into postbus_data.archive_file as f (
            stream_id, path, bytes, message_count, first_seq, last_seq, first_published_at, last_published_at
        )
        select
            add_files.stream_id,
            file ->> 'path',
            (file ->> 'bytes')::bigint,
            sum(p.message_count),
            min(p.first_seq),
            max(p.last_seq),
            (file ->> 'first_published_at')::timestamptz,
            (file ->> 'last_published_at')::timestamptz
        from jsonb_populate_recordset(null::postbus_data.archive_part, file -> 'parts') as p
        returning f.id, f.message_count into new_id, counted;
        insert into postbus_data.archive_part (file_id, partition, first_seq, last_seq, message_count, checksum)
        select new_id, p.partition, p.first_seq, p.last_seq, p.message_count, p.checksum
        from jsonb_populate_recordset(null::postbus_data.archive_part, file -> 'parts') as p;
        total := total + counted;
    end loop;
    return total;
end
$$;

create or replace function postbus_data.archive_files(
    stream text,
    after_seq bigint,
    to_seq bigint,
    from_time timestamptz default null,
    to_time timestamptz default null
)
returns table (
    id bigint,
    path text,
    bytes bigint,
    message_count bigint,
    first_seq bigint,
    last_seq bigint,
    first_published_at timestamptz,
    last_published_at timestamptz
)
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
/*
The files of an archive that may hold messages with after_seq < seq <= to_seq and from_time <= published_at < to_time, in order.

Raises   PB404 for an unknown stream.
*/
    select
        f.id, f.path, f.bytes, f.message_count, f.first_seq, f.last_seq, f.first_published_at, f.last_published_at
    from postbus_data.archive_file as f
    where f.stream_id = postbus_data.stream_id(stream)
        and f.removed_at is null
        and f.last_seq > after_seq
        and f.first_seq <= to_seq
        and (from_time is null or f.last_published_at >= from_time)
        and (to_time is null or f.first_published_at < to_time)
    order by f.first_seq, f.id
$$;

create or replace function postbus_data.archive_folders(stream text)
returns setof text
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
/* The folders below an archive's folder that have, or had, files of the archive. Raises PB404 for an unknown stream. */
    select distinct split_part(f.path, '/', 1)
    from postbus_data.archive_file as f
    where f.stream_id = postbus_data.stream_id(stream)
$$;

create or replace function postbus_data.archive_format(stream text)
returns text
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
/* The format of an archive: parquet, or delta when its folder is also a Delta table. Null without an archive. Raises PB404. */
    select a.format from postbus_data.archive as a where a.stream_id = postbus_data.stream_id(stream)
$$;

create or replace function postbus_data.archive_parts(stream text)
returns table (path text, partition integer, first_seq bigint, last_seq bigint, message_count bigint, checksum bigint)
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
/* What each file of an archive holds of each partition. Raises PB404. */
    select f.path, p.partition, p.first_seq, p.last_seq, p.message_count, p.checksum
    from postbus_data.archive_file as f
    join postbus_data.archive_part as p on p.file_id = f.id
    where f.stream_id = postbus_data.stream_id(stream)
        and f.removed_at is null
    order by f.first_seq, f.id, p.partition
$$;

create or replace function postbus_data.archive_start(stream text, after_seq bigint, since timestamptz default null)
returns bigint
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
/*
The seq after which an archive's next message lies, above after_seq and not before a time; there is none in between. Null when
the archive has no such message.

Raises   PB404 for an unknown stream.
*/
    select greatest(min(f.first_seq) - 1, after_seq)
    from postbus_data.archive_file as f
    where f.stream_id = postbus_data.stream_id(stream)
        and f.removed_at is null
        and f.last_seq > after_seq
        and (since is null or f.last_published_at >= since)
$$;

create or replace function postbus_data.archive_state(
    stream text,
    out root text,
    out start_after bigint,
    out position_seq bigint,
    out file_count bigint,
    out message_count bigint,
    out bytes bigint
)
returns setof record
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
/*
The archive of a stream, which holds messages above start_after, up to position_seq. No row without an archive. Raises PB404.
*/
    select a.root, a.start_after, a.position_seq, count(f.id), coalesce(sum(f.message_count), 0)::bigint, coalesce(sum(f.bytes), 0)::bigint
    from postbus_data.archive as a
    left join postbus_data.archive_file as f on f.stream_id = a.stream_id and f.removed_at is null
    where a.stream_id = postbus_data.stream_id(stream)
    group by a.stream_id
$$;

create or replace function postbus_data.archive_steps(
    stream text,
    out message_count bigint,
    out lost_count bigint,
    out gap_after bigint
)
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
/*
A summary of an archive's steps: how many messages they hold, how many steps found their messages purged, and the first seq
after which a step is missing (null when none is).

Raises   PB404 for an unknown stream.
*/
    select
        coalesce(sum(b.message_count), 0)::bigint,
        count(*) filter (where b.is_lost),
        min(b.before) filter (where b.before <> b.after_seq)
    from (
        select
            b.*,
            lag(b.to_seq, 1, a.start_after) over (order by b.to_seq) as before
        from postbus_data.archive as a
        join postbus_data.archive_batch as b on b.stream_id = a.stream_id
        where a.stream_id = postbus_data.stream_id(stream)
            and b.to_seq > a.start_after
    ) as b
$$;

create or replace function postbus_data.commit_archive(
    stream text,
    consumer text,
    after_seq bigint,
    to_seq bigint,
    files jsonb,
    is_lost boolean
)
returns bigint
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
/*
Commit the next step of an archive: list the files that hold after_seq < seq <= to_seq, and allow retention to drop these
messages.

is_lost  the messages were purged before they could be archived, and there are no files.

Returns  how many messages the step holds.
Raises   PB404 for an unknown stream, PB409 when another run has committed this step, or the files do not hold as many messages
         as the log.
Touches  archive (update), archive_batch, archive_file, archive_part (insert), the consumer's position.
Locks    the archive's row, so that only one of two runs commits the step.
*/
declare
    found_id integer := postbus_data.stream_id(stream);
    known bigint;
    archived bigint;
    logged bigint;
begin
    select a.position_seq into known from postbus_data.archive as a where a.stream_id = found_id for update;
    if known is distinct from after_seq then
        raise exception using
            errcode = 'PB409',
            message = format('the archive of stream "%s" is at seq %s, not at %s: another run is active', stream, known, after_seq),
            hint = 'run one at a time; nothing was lost or duplicated';
    end if;
    archived := postbus_data.add_files(found_id, files);
    logged := case when is_lost then 0 else postbus_data.count_range(found_id, after_seq, to_seq) end;
    if archived <> logged then
        raise exception using
            errcode = 'PB409',
            message = format(
                'the files hold %s messages from seq %s to %s, and the log of stream "%s" %s', archived, after_seq + 1, to_seq, stream, logged
            ),
            hint = 'nothing was archived; run it again';
    end if;
    insert into postbus_data.archive_batch (stream_id, after_seq, to_seq, message_count, is_lost)
    values (found_id, after_seq, to_seq, archived, is_lost);
    update postbus_data.archive as a set position_seq = to_seq where a.stream_id = found_id;
    perform postbus_data.spark_commit(stream, consumer, to_seq);
    return archived;
end
$$;

create or replace function postbus_data.count_range(stream_id integer, after_seq bigint, to_seq bigint)
returns bigint
language plpgsql
volatile
set enable_seqscan = off
as $$
/* How many messages of a stream's log have after_seq < seq <= to_seq, counted one by one. */
declare
    segment postbus_data.segment;
    counted bigint;
    total bigint := 0;
begin
    for segment in
        select g.*
        from postbus_data.segment as g
        where g.stream_id = count_range.stream_id
            and g.after_seq < to_seq
            and (g.last_seq > count_range.after_seq or g.sealed_at is null)
    loop
        execute format(
            'select count(*)
            from postbus_data.segment_partitions(%s, %s, %s) as p (n)
            cross join lateral (
                select from %s as l where l.partition = p.n and l.seq > $1 and l.seq <= $2
            ) as m',
            segment.stream_id,
            segment.partition_base,
            segment.partition_count,
            postbus_data.log_table(stream_id, segment.number)
        ) into counted using after_seq, to_seq;
        total := total + counted;
    end loop;
    return total;
end
$$;

create or replace function postbus_data.expire_archive(stream text, before timestamptz)
returns bigint
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
/*
Remove the oldest steps of an archive whose messages were all published before a time. Only whole steps are removed, and no file
is rewritten.

Returns  how many messages were removed.
Raises   PB404 for an unknown stream.
Touches  archive (update), archive_file (update).
Locks    the archive's row.
*/
declare
    known postbus_data.archive;
    edge bigint;
    gone bigint;
begin
    select a.* into known from postbus_data.archive as a where a.stream_id = postbus_data.stream_id(stream) for update;
    select max(b.to_seq)
    into edge
    from postbus_data.archive_batch as b
    where b.stream_id = known.stream_id
        and b.to_seq > known.start_after
        -- Steps and files that also hold later messages.
        and not exists (
            select
            from postbus_data.archive_file as f
            where f.stream_id = known.stream_id
                and f.removed_at is null
                and f.first_seq <= b.to_seq
                and (f.last_published_at >= before or f.last_seq > b.to_seq)
        );
    if edge is null then
        return 0;
    end if;
    update postbus_data.archive as a set start_after = edge where a.stream_id = known.stream_id;
    with removed as (
        update postbus_data.archive_file as f
        set removed_at = clock_timestamp()
        where f.stream_id = known.stream_id
            and f.removed_at is null
            and f.last_seq <= edge
        returning f.message_count
    )
    select coalesce(sum(r.message_count), 0) into gone from removed as r;
    return gone;
end
$$;

create or replace function postbus_data.forget_files(stream text, ids bigint[])
returns void
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
/* Forget files of an archive that were deleted. Files that still count stay. Raises PB404 for an unknown stream. */
    delete from postbus_data.archive_file as f
    where f.stream_id = postbus_data.stream_id(stream)
        and f.id = any (ids)
        and f.removed_at is not null
$$;

create or replace function postbus_data.open_archive(stream text, root text, consumer text, format text default 'parquet')
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
/*
Create the archive of a stream, from its oldest message on, unless it has one. The archive's consumer makes the stream keep what
is not archived yet.

format   delta makes the folder a Delta table too; an archive that is one stays one.

Raises   PB404 for an unknown stream, PB409 when the archive is in another folder.
*/
declare
    found_id integer := postbus_data.stream_id(stream);
    first_kept bigint := (select s.start_seq from postbus_data.stream as s where s.id = found_id);
    known text;
begin
    insert into postbus_data.archive (stream_id, root, start_after, position_seq)
    values (found_id, root, greatest(first_kept - 1, 0), greatest(first_kept - 1, 0))
    on conflict do nothing;
    select a.root into known from postbus_data.archive as a where a.stream_id = found_id;
    if known <> root then
        raise exception using
            errcode = 'PB409',
            message = format('the archive of stream "%s" is in %s, not in %s', stream, known, root),
            hint = 'archive to that folder';
    end if;
    if open_archive.format <> 'parquet' then
        update postbus_data.archive as a set format = open_archive.format where a.stream_id = found_id;
    end if;
    if exists (select from postbus_data.consumer as c where c.stream_name = stream and c.name = consumer) then
        perform postbus.alter_consumer(stream, consumer, keep_unread => true);
    else
        perform postbus.create_consumer(stream, consumer, keep_unread => true);
    end if;
end
$$;

create or replace function postbus_data.removed_files(stream text, before timestamptz)
returns table (id bigint, path text)
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
/*
The files of an archive that stopped counting before a time, so that they can be deleted. Raises PB404 for an unknown stream.
*/
    select f.id, f.path
    from postbus_data.archive_file as f
    where f.stream_id = postbus_data.stream_id(stream)
        and f.removed_at < before
    order by f.id
$$;

create or replace function postbus_data.replace_files(stream text, old_ids bigint[], files jsonb)
returns bigint
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
/*
Replace files of an archive by others that hold the same messages. Readers that began earlier may still read the old files.

Returns  how many messages the new files hold.
Raises   PB404 for an unknown stream, PB409 when an old file is no longer listed, or the new files do not hold the same messages.
Touches  archive_file (insert, update), archive_part (insert).
Locks    the archive's row, so that steps, compaction and retention exclude each other.
*/
declare
    found_id integer := postbus_data.stream_id(stream);
    last_id bigint;
    replaced bigint;
    total bigint;
begin
    perform from postbus_data.archive as a where a.stream_id = found_id for update;
    last_id := (select coalesce(max(f.id), 0) from postbus_data.archive_file as f);
    update postbus_data.archive_file as f
    set removed_at = clock_timestamp()
    where f.stream_id = found_id
        and f.id = any (old_ids)
        and f.removed_at is null;
    get diagnostics replaced = row_count;
    if replaced <> cardinality(old_ids) then
        raise exception using
            errcode = 'PB409',
            message = format('%s of %s files of the archive of "%s" are no longer listed', cardinality(old_ids) - replaced, cardinality(old_ids), stream),
            hint = 'another run has replaced them; nothing was changed';
    end if;
    total := postbus_data.add_files(found_id, files);
    if exists (
        select
        from (
            select
                p.partition,
                sum(case when f.id > last_id then p.message_count else -p.message_count end) as difference,
                bit_xor(p.checksum) as checksum
            from postbus_data.archive_file as f
            join postbus_data.archive_part as p on p.file_id = f.id
            where f.stream_id = found_id
                and (f.id > last_id or f.id = any (old_ids))
            group by p.partition
        ) as p
        where p.difference <> 0
            or p.checksum <> 0
    ) then
        raise exception using
            errcode = 'PB409',
            message = format('new files of the archive of "%s" do not hold what the old ones did', stream),
            hint = 'nothing was changed; check it with: postbus pipeline run archive STREAM --verify';
    end if;
    return total;
end
$$;

create or replace function postbus_data.replay_copies(
    pipeline text,
    run uuid,
    stream text,
    consumer text,
    to_seq bigint,
    partitions integer[],
    seqs bigint[],
    published_at timestamptz[],
    keys text[],
    data text[],
    headers jsonb[],
    bytes bytea[]
)
returns bigint
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
/*
Deliver messages of an archive to one consumer, and record in the same transaction that its pipeline has reached to_seq. So each
message is delivered once, even if the pipeline is killed and run again.

Messages that the log no longer has are copied to the table kept. A message that the consumer still gets from the log, holds, or
has buried is left alone, and so is one that does not pass its filter.

Returns  how many messages are delivered; null when another run has replaced this one.
Raises   PB404 for an unknown stream or consumer.
Touches  kept, waiting (insert), pipeline (update).
*/
#variable_conflict use_column
declare
    reader postbus_data.consumer := postbus_data.find_consumer(stream, consumer);
    data_type text;
    first_kept bigint;
    present bigint[];
    delivered bigint;
begin
    update postbus_data.pipeline as p
    set position_seq = replay_copies.to_seq
    where p.name = pipeline
        and p.run = replay_copies.run;
    if not found then
        return null;
    end if;
    select s.data_type, s.start_seq into data_type, first_kept from postbus_data.stream as s where s.id = reader.stream_id;
    -- Also in a segment that is purged and not dropped yet.
    select array_agg(d.seq)
    into present
    from (
        select m.partition, array_agg(m.seq) as seqs, array_agg(1) as attempts
        from unnest(partitions, replay_copies.seqs) as m (partition, seq)
        group by m.partition
    ) as p
    cross join lateral unnest(postbus_data.fetch_named(reader.stream_id, data_type, p.partition, p.seqs, p.attempts, 0)) as d;

    with chosen as materialized (
        select m.*
        from unnest(partitions, seqs, replay_copies.published_at, keys, replay_copies.data, replay_copies.headers, replay_copies.bytes)
            as m (partition, seq, published_at, key, data, headers, bytes)
        where m.seq <= greatest(
                coalesce(
                    (
                        select h.read_to_seq
                        from postbus_data.position as h
                        where h.consumer_id = reader.id
                            and h.epoch = reader.epoch
                            and h.partition = m.partition
                        order by h.read_to_seq desc
                        limit 1
                    ),
                    reader.start_after
                ),
                -- What retention has purged, receive passes over, although the consumer has not read it.
                first_kept - 1
            )
            and postbus_data.passes(
                reader, row(null, 1, m.seq, m.partition, m.key, m.data, m.bytes, m.headers, m.published_at, 0, null, null, null)::postbus.delivery
            )
            and not exists (
                select
                from postbus_data.lease as l
                where l.consumer_id = reader.id
                    and l.epoch = reader.epoch
                    and m.seq = any (l.seqs)
                    and not exists (select from postbus_data.settled as s where s.token = l.token and s.seq = m.seq)
            )
            and not exists (
                select from postbus_data.due as d where d.consumer_id = reader.id and d.epoch = reader.epoch and d.seq = m.seq
            )
            and not exists (
                select
                from postbus_data.parked as k
                where k.consumer_id = reader.id
                    and k.epoch = reader.epoch
                    and k.partition = m.partition
                    and k.seq = m.seq
            )
            and not exists (select from postbus_data.dead_letter as d where d.consumer_id = reader.id and d.seq = m.seq)
    ),
    copies as (
        insert into postbus_data.kept (stream_id, partition, seq, published_at, key, data, bytes, headers)
        select reader.stream_id, m.partition, m.seq, m.published_at, m.key, m.data, m.bytes, m.headers
        from chosen as m
        where m.seq <> all (coalesce(present, '{}'))
        on conflict do nothing
    ),
    waiting as (
        insert into postbus_data.waiting (consumer_id, partition, seq, key, attempts, due_at, reason)
        select reader.id, m.partition, m.seq, m.key, 0, clock_timestamp(), 'replayed'
        from chosen as m
        on conflict on constraint waiting_pkey do nothing
        returning seq
    )
    select count(*) into delivered from waiting;
    return delivered;
end
$$;

create or replace function postbus.backfill_ranges(pipeline text)
returns table (
    number integer,
    after_key text[],
    to_key text[],
    is_of_nulls boolean,
    message_count bigint,
    bad_count bigint,
    snapshot pg_snapshot,
    wal_lsn pg_lsn,
    done_at timestamptz
)
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
The ranges of a backfill, in order of the key, each with the snapshot of the source at which it was read.

after_key, to_key  the range holds rows with after_key < key <= to_key. Bounds are the key's column values as text; null is before
                   the first row or after the last. With is_of_nulls, the rows that have no value in a column of the key.
snapshot           null until the range is published. The range includes a change of the source if
                   pg_visible_in_snapshot(the change's transaction, snapshot). To continue with change data capture, skip these
                   changes and apply all others.
wal_lsn            the source's WAL position just before the snapshot. A commit may be in the WAL shortly before its effects are
                   visible, so start earlier: with a replication slot created before the backfill.

Returns  a row for each range of the pipeline's latest plan; none for an unknown pipeline.
*/
    select r.number, r.after_key, r.to_key, r.is_of_nulls, r.message_count, r.bad_count, s.snapshot, s.wal_lsn, r.done_at
    from postbus_data.backfill_range as r
    left join postbus_data.backfill_snapshot as s on s.id = r.snapshot_id
    where r.pipeline = backfill_ranges.pipeline
        and r.writer = (select p.plan ->> 'writer' from postbus_data.pipeline as p where p.name = backfill_ranges.pipeline)
    order by r.number
$$;

create or replace function postbus_data.begin_range(snapshot_id bigint, writer text, number integer)
returns table (after_key text[], to_key text[], is_of_nulls boolean)
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
/*
Take a range of a backfill, to publish it in this transaction.

Returns  no row when the range is published already, or may not be read at this snapshot any more: the snapshot is closed, or
         another run has begun.
Locks    the range, so that only one of two attempts publishes it.
*/
#variable_conflict use_column
begin
    return query
    select r.after_key, r.to_key, r.is_of_nulls
    from postbus_data.backfill_range as r
    where r.writer = begin_range.writer
        and r.number = begin_range.number
        and r.done_at is null
        and exists (
            select
            from postbus_data.backfill_snapshot as s
            join postbus_data.pipeline as p on p.name = s.pipeline and p.run = s.run
            where s.id = begin_range.snapshot_id
                and s.closed_at is null
        )
    for update of r;
end
$$;

create or replace function postbus_data.close_snapshot(snapshot_id bigint)
returns void
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
/* Let no more ranges begin at a snapshot. Ranges that have begun are finished. */
    update postbus_data.backfill_snapshot as s
    set closed_at = clock_timestamp()
    where s.id = snapshot_id
        and s.closed_at is null
$$;

create or replace function postbus_data.copy_range(stream text, snapshot_id bigint, writer text, number integer, messages text)
returns bigint
language plpgsql
volatile
as $$
/*
Publish a range of a backfill whose source is this database, and record that it is done. Its rows do not leave the server.

messages  the query that reads the rows, as key, data (JSON, text or bytes) and problem. This function has its caller's
          search_path, so that the query means the same here as to the caller; every other name in it is qualified.

Returns  how many messages were published. Null when the range cannot be published this way, and the caller has to roll back: a
         row cannot be published, the stream keeps one message per key or has channels, or somebody has published the range since the
         transaction's snapshot.
Touches  backfill_range (update), the current segment of the stream (insert).
Locks    the range, and the horizon of the stream, shared, until the transaction ends.

The transaction runs at the snapshot that is read. Whatever must be current comes from sequences, locks and updates.
*/
declare
    entry postbus_data.publish_target;
    layout bigint;
    message_count bigint;
begin
    begin
        perform from postbus_data.backfill_range as r
        where r.writer = copy_range.writer
            and r.number = copy_range.number
            and r.done_at is null
        for update;
        if not found then
            return null;
        end if;
    exception when serialization_failure then
        return null;
    end;
    entry := postbus_data.begin_publish(stream, null);
    if entry.one_message_per_key or entry.channel_tokens is not null then
        return null;
    end if;
    loop
        begin
            execute pg_catalog.format(
                'insert into postbus_data.log_%s_%s (seq, published_at, partition, key, data)
                select
                    m.seq,
                    pg_catalog.clock_timestamp(),
                    $1 + pg_catalog.mod(
                        (pg_catalog.get_byte(m.hash, 0) << 16) | (pg_catalog.get_byte(m.hash, 1) << 8) | pg_catalog.get_byte(m.hash, 2), $2
                    ),
                    m.key,
                    m.data::%s
                from (
                    select
                        pg_catalog.nextval($3) as seq,
                        pg_catalog.sha256(pg_catalog.convert_to(q.key, ''UTF8''::pg_catalog.name)) as hash,
                        case
                            when q.problem is null and pg_catalog.octet_length(q.data%s) <= $4 then q.key
                            else postbus_data.raise_unpublishable()
                        end as key,
                        q.data
                    from (%s) as q
                    offset 0
                ) as m',
                entry.stream_id,
                postbus_data.layout_segment(entry.layout),
                case entry.data_type when 'bytes' then 'pg_catalog.bytea' else 'pg_catalog.' || entry.data_type end,
                case when entry.data_type <> 'bytes' then '::pg_catalog.text' end,
                messages
            )
            using postbus_data.layout_base(entry.layout), postbus_data.layout_count(entry.layout), entry.sequence, entry.max_message_bytes;
            get diagnostics message_count = row_count;
            layout := pg_catalog.pg_sequence_last_value(pg_catalog.to_regclass('postbus_data.layout_' || entry.stream_id::text));
            if layout <> entry.layout then
                -- A new segment began while seqs were drawn: draw again, see draw_seqs.
                raise exception using errcode = 'PB001', message = 'the layout has changed';
            end if;
            exit;
        exception
            when sqlstate 'PB001' then
                entry.layout := layout;
            when sqlstate 'PB002' then
                return null;
        end;
    end loop;
    perform postbus_data.end_range(snapshot_id, writer, number, message_count, 0);
    return message_count;
end
$$;

create or replace function postbus_data.end_range(
    snapshot_id bigint,
    writer text,
    number integer,
    message_count bigint,
    bad_count bigint
)
returns void
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
/* Record that this transaction publishes a range of a backfill, as it was at a snapshot. */
    update postbus_data.backfill_range as r
    set snapshot_id = end_range.snapshot_id,
        message_count = end_range.message_count,
        bad_count = end_range.bad_count,
        done_at = clock_timestamp()
    where r.writer = end_range.writer
        and r.number = end_range.number
$$;

create or replace function postbus_data.open_snapshot(pipeline text, run uuid, snapshot pg_snapshot, wal_lsn pg_lsn)
returns bigint
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
/*
Record a snapshot of the source, at which a run of a backfill will read.

Returns  its number.
Raises   PB409 when another run has replaced this one.
Locks    the pipeline's row.
*/
declare
    new_id bigint;
begin
    perform postbus_data.hold_pipeline(open_snapshot.pipeline, open_snapshot.run);
    insert into postbus_data.backfill_snapshot (pipeline, run, snapshot, wal_lsn)
    values (open_snapshot.pipeline, open_snapshot.run, open_snapshot.snapshot, open_snapshot.wal_lsn)
    returning id into new_id;
    return new_id;
end
$$;

create or replace function postbus_data.plan_ranges(pipeline text, run uuid, writer text, ranges jsonb)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
/*
Record the ranges of a backfill, unless they are recorded already.

ranges   [{"after_key": ["1"], "to_key": ["2"], "is_of_nulls": false}], in order.

Raises   PB409 when another run has replaced this one.
Locks    the pipeline's row.
*/
begin
    perform postbus_data.hold_pipeline(plan_ranges.pipeline, plan_ranges.run);
    if exists (select from postbus_data.backfill_range as r where r.writer = plan_ranges.writer) then
        return;
    end if;
    insert into postbus_data.backfill_range (pipeline, writer, number, after_key, to_key, is_of_nulls)
    select
        plan_ranges.pipeline,
        plan_ranges.writer,
        n.place - 1,
        postbus_data.text_array(n.range -> 'after_key'),
        postbus_data.text_array(n.range -> 'to_key'),
        (n.range ->> 'is_of_nulls')::boolean
    from jsonb_array_elements(ranges) with ordinality as n (range, place);
end
$$;

create or replace function postbus_data.raise_unpublishable()
returns text
language plpgsql
volatile
as $$
/* End copy_range: a row cannot be published. */
begin
    raise exception using errcode = 'PB002', message = 'a row cannot be published';
end
$$;

create or replace function postbus_data.range_counts(writer text)
returns table (message_count bigint, bad_count bigint, open_numbers bigint[])
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
/*
The progress of a backfill: messages and rejected rows of the finished ranges, and the numbers of the others; null without ranges.
*/
    select
        coalesce(sum(r.message_count), 0)::bigint,
        coalesce(sum(r.bad_count), 0)::bigint,
        array_agg(r.number::bigint order by r.number) filter (where r.done_at is null)
    from postbus_data.backfill_range as r
    where r.writer = range_counts.writer
$$;

create or replace function postbus_data.text_array(list jsonb)
returns text[]
language sql
immutable
set search_path = pg_catalog, pg_temp
as $$
/* The texts of a JSON array; null for JSON null. */
    select array_agg(t.text order by t.place)
    from jsonb_array_elements_text(case jsonb_typeof(list) when 'array' then list else '[]' end) with ordinality as t (text, place)
$$;

create or replace function postbus.channel_states(
    stream text,
    consumer text,
    max_channels integer default 100,
    caller postbus.caller default postbus.current_caller()
)
returns table (
    channel text,
    partition integer,
    waiting bigint,
    in_flight bigint,
    limited_by text,
    next_at timestamptz,
    pattern text
)
language plpgsql
volatile
security definer
set enable_seqscan = off
set enable_bitmapscan = off
set search_path = pg_catalog, pg_temp
as $$
/*
Why messages wait: the channels that have messages in flight for a consumer, or that wait for their turn.

waiting      how many of its messages are ready and not in flight, as far as the consumer has read; 1,000 means that many or more.
in_flight    how many are leased.
limited_by   what holds it: concurrency, rate or paused. Null if it only waits for its turn, or for a worker.
next_at      when its rate lets it go on; null if that is not a matter of time.
pattern      whose limits it has; null for none.

Channels whose messages are all new to the consumer are not in the list: nothing holds them. For a consumer that is not by channel it is empty.

Raises   PB400 unless max_channels is between 1 and 10,000, PB403 without the right to consume, PB404 for an unknown stream or consumer.
*/
#variable_conflict use_column
declare
    reader postbus_data.consumer := postbus_data.permitted_consumer(caller, stream, consumer);
    tokens integer := (select s.channel_tokens from postbus_data.stream as s where s.id = reader.stream_id);
begin
    if (max_channels between 1 and 10000) is not true then
        raise exception using errcode = 'PB400', message = format('max_channels = %s is not between 1 and 10000', coalesce(max_channels::text, 'null'));
    end if;
    if not reader.by_channel then
        return;
    end if;
    return query
    with leased as (
        select l.partition, postbus_data.channel_of(m.key, tokens) as channel, count(*) as message_count
        from postbus_data.lease as l
        cross join lateral unnest(l.seqs, l.keys) as m (seq, key)
        where l.consumer_id = reader.id
            and l.epoch = reader.epoch
            and not exists (select from postbus_data.settled as s where s.token = l.token and s.seq = m.seq)
        group by l.partition, postbus_data.channel_of(m.key, tokens)
    ),
    turn as (
        select t.* from postbus_data.turn as t where t.consumer_id = reader.id and t.epoch = reader.epoch
    ),
    known as (
        select
            coalesce(t.channel, l.channel) as channel, coalesce(t.partition, l.partition) as partition, t.after_seq, coalesce(l.message_count, 0) as in_flight,
            t.limited_by, t.ready_at, t.n
        from turn as t
        full join leased as l on l.partition = t.partition and l.channel = t.channel
        order by t.n nulls last, 1
        limit max_channels
    )
    select
        k.channel, k.partition,
        case
            when k.n is null then 0
            else least(
                1000,
                (select c.message_count from postbus_data.count_channel(reader, k.partition, k.channel, k.after_seq, 1000) as c) + (
                    select count(*)
                    from (
                        select
                        from postbus_data.due as d
                        where d.consumer_id + 0 = reader.id
                            and d.epoch = reader.epoch
                            and d.channel = k.channel
                        limit 1000
                    ) as d
                )
            )
        end,
        k.in_flight,
        case when k.ready_at > clock_timestamp() or k.ready_at = '-infinity' then k.limited_by end,
        case when isfinite(k.ready_at) and k.ready_at > clock_timestamp() then k.ready_at end,
        (postbus_data.channel_limits(reader.stream_id, k.channel)).pattern
    from known as k
    order by k.n nulls last, k.channel;
end
$$;

create or replace function postbus_data.append_channel_due(reader postbus_data.consumer, from_time timestamptz, to_time timestamptz)
returns integer
language plpgsql
volatile
as $$
/*
What append_due does, for a consumer by channel: each partition has a redelivery log of its own, and a message stays in it until its channel's turn.

Its caller holds the sweep mutex until it commits, so rows become visible in the order of their numbers.

Returns  how many were moved.
Touches  waiting (delete), due (insert).
*/
#variable_conflict use_variable
declare
    moved integer;
begin
    with ripe as materialized (
        select w.consumer_id, w.partition, w.seq, w.due_at
        from postbus_data.waiting as w
        where w.consumer_id + 0 = reader.id
            and w.due_at > from_time
            and w.due_at <= to_time
        order by w.due_at
        limit 10000
        for update skip locked
    ),
    taken as (
        delete from postbus_data.waiting as w
        using ripe as r
        where w.consumer_id = r.consumer_id
            and w.partition = r.partition
            and w.seq = r.seq
        returning w.partition, w.seq, w.attempts, w.token, w.key
    ),
    log as materialized (
        select p.partition, greatest(r.read_to_n, last.n) as last_n
        from (select distinct t.partition from taken as t) as p
        cross join lateral postbus_data.redelivery_position_of(reader, postbus_data.channel_lane(p.partition)) as r
        left join lateral (
            select d.n
            from postbus_data.due as d
            where d.consumer_id = reader.id
                and d.epoch = reader.epoch
                and d.lane = postbus_data.channel_lane(p.partition)
            order by d.n desc
            limit 1
        ) as last on true
    )
    insert into postbus_data.due (consumer_id, epoch, n, partition, seq, attempts, token, lane, channel)
    select
        reader.id, reader.epoch, l.last_n + row_number() over (partition by t.partition order by t.seq), t.partition, t.seq, t.attempts, t.token,
        postbus_data.channel_lane(t.partition), postbus_data.channel_of(t.key, s.channel_tokens)
    from taken as t
    join log as l on l.partition = t.partition
    join postbus_data.stream as s on s.id = reader.stream_id;
    get diagnostics moved = row_count;
    return moved;
end
$$;

create or replace function postbus_data.begin_channel_claim(reader postbus_data.consumer, claim postbus_data.receive_state, partition integer)
returns postbus_data.channel_claim
language plpgsql
volatile
as $$
/*
The position of a partition, and what of it is in flight.

Its caller holds the partition's mutex. Each lease of the partition is listed in its state, so none is overlooked: a lease ends by itself, but begins only
under the mutex.
*/
#variable_conflict use_variable
declare
    here postbus_data.channel_claim;
    place postbus_data.position := postbus_data.position_of(reader, partition);
    leases bigint[];
begin
    if place.read_to_seq = 9223372036854775807 then
        return here;
    end if;
    here.began := place;
    here.state := postbus_data.channel_position_of(reader, partition);
    place.segment := 0;
    place.leases := '{}';
    if claim.start_seq - 1 > place.read_to_seq then
        place.missed_count := place.missed_count + postbus_data.missed_between(
            reader.stream_id, partition, place.read_to_seq, claim.start_seq, postbus_data.layout_count(claim.layout)
        );
        place.read_to_seq := claim.start_seq - 1;
    end if;
    here.in_flight := '{}';
    here.channel_tokens := (select s.channel_tokens from postbus_data.stream as s where s.id = reader.stream_id);
    here.has_limits := exists (select from postbus_data.channel as c where c.stream_id = reader.stream_id);
    if (here.state).leases <> '{}' then
        select
            array_agg(distinct l.token),
            array_agg(postbus_data.channel_of(m.key, here.channel_tokens)) filter (where not exists (
                select from postbus_data.settled as s where s.token = l.token and s.seq = m.seq
            ))
        into leases, here.in_flight
        from postbus_data.lease as l
        cross join lateral unnest(l.seqs, l.keys) as m (seq, key)
        where l.token = any ((here.state).leases);
        here.in_flight := coalesce(here.in_flight, '{}');
    end if;
    here.state.leases := coalesce(leases, '{}');
    here.place := place;
    here.data_type := claim.data_type;
    here.start_seq := claim.start_seq;
    here.now_at := clock_timestamp();
    here.horizon := claim.horizon;
    here.scan_left := 65536;
    here.is_changed := false;
    return here;
end
$$;

create or replace function postbus_data.channel_expression(key text, tokens integer)
returns text
language sql
immutable
as $$
/*
What channel_of says, as an expression for an index and for the statements that use it.

key     the expression of the key.
tokens  null, for a stream without channels, leaves the key as it is.
*/
    select case
        when tokens is null then key
        when tokens = 1 then format('pg_catalog.split_part(%s, ''.''::text, 1)', key)
        else (
            select format(
                'pg_catalog.rtrim(%s, ''.''::text)', string_agg(format('pg_catalog.split_part(%s, ''.''::text, %s)', key, n), ' || ''.''::text || ' order by n)
            )
            from generate_series(1, tokens) as n
        )
    end
$$;

create or replace function postbus_data.channel_lane(partition integer)
returns integer
language sql
immutable parallel safe
as $$
/* Which redelivery log the retries of a partition are in, for a consumer by channel. They stay there until their channel's turn. Written to be inlined. */
    select -1 - partition
$$;

create or replace function postbus_data.channel_limits(stream_id integer, name text)
returns postbus_data.channel
language plpgsql
volatile
as $$
/* The limits of a channel: those of its own name, else of the most specific pattern that matches. A row of nulls if there are none. */
#variable_conflict use_variable
declare
    limits postbus_data.channel;
begin
    select c.* into limits from postbus_data.channel as c where c.stream_id = stream_id and c.pattern = name;
    if not found then
        select c.*
        into limits
        from postbus_data.channel as c
        where c.stream_id = stream_id
            and c.regex is not null
            and name ~ c.regex
        order by c.rank
        limit 1;
    end if;
    return limits;
end
$$;

create or replace function postbus_data.channel_of(key text, tokens integer)
returns text
language sql
immutable parallel safe
as $$
/* The channel of a key in a stream with that many channel_tokens: so many leading tokens, or the whole key if it has fewer. Written to be inlined. */
    select case tokens
        when 1 then split_part(key, '.', 1)
        else array_to_string((string_to_array(key, '.'))[1:tokens], '.')
    end
$$;

create or replace function postbus_data.channel_position_of(reader postbus_data.consumer, partition integer)
returns postbus_data.channel_position
language plpgsql
volatile
as $$
/* Where a consumer by channel is with its turns in a partition. */
#variable_conflict use_variable
declare
    state postbus_data.channel_position;
begin
    select p.*
    into state
    from postbus_data.channel_position as p
    where p.consumer_id = reader.id
        and p.epoch = reader.epoch
        and p.partition = partition
    order by p.n desc
    limit 1;
    if state.n is null then
        state := row(reader.id, reader.epoch, partition, 0, '{}'::bigint[], 0, 0, '-infinity'::timestamptz, false);
    end if;
    return state;
end
$$;

create or replace function postbus_data.channel_rank(pattern text)
returns text
language sql
immutable
as $$
/* Sorts patterns: a token is more specific than "*", that is more than ">", and earlier tokens count first. */
    select string_agg(case t.token when '*' then '1' when '>' then '2' else '0' end, '' order by t.place)
    from unnest(string_to_array(pattern, '.')) with ordinality as t (token, place)
$$;

create or replace function postbus_data.channel_room(
    reader postbus_data.consumer,
    channel text,
    in_flight text[],
    quantum integer,
    has_limits boolean,
    now_at timestamptz
)
returns postbus_data.channel_room
language plpgsql
volatile
as $$
/*
How many messages of a channel a consumer may lease now, by the channel's limits as they are now. Hot.

in_flight  the channels of the messages that are leased, one by one.
quantum    of a turn with weight 1; null for a consumer that is not fair.

The rate is GCRA: each message uses a step, and as many as the burst may be used at once.
Its caller holds the partition's mutex, and has read in_flight under it.
*/
#variable_conflict use_variable
declare
    here postbus_data.channel_room;
    limits postbus_data.channel;
    free_at timestamptz;
begin
    here.room := 2147483647;
    here.quantum := quantum;
    if not has_limits then
        return here;
    end if;
    limits := postbus_data.channel_limits(reader.stream_id, channel);
    if limits.pattern is null then
        return here;
    end if;
    here.quantum := quantum * limits.weight;
    if limits.paused then
        here.room := 0;
        here.limited_by := 'paused';
        here.ready_at := 'infinity';
        return here;
    end if;
    if limits.max_concurrency is not null then
        here.max_concurrency := limits.max_concurrency;
        here.room := greatest(0, limits.max_concurrency - cardinality(array_positions(in_flight, channel)));
        if here.room = 0 then
            here.limited_by := 'concurrency';
            here.ready_at := '-infinity';
            return here;
        end if;
    end if;
    if limits.max_rate is not null then
        here.step := limits.per / limits.max_rate;
        here.tat := greatest(
            now_at,
            (
                select p.tat
                from postbus_data.channel_pace as p
                where p.consumer_id = reader.id
                    and p.channel = channel
                order by p.tat desc
                limit 1
            )
        );
        -- When the next message may go.
        free_at := here.tat - (limits.burst - 1) * here.step;
        if free_at > now_at then
            here.room := 0;
            here.limited_by := 'rate';
            here.ready_at := free_at;
            return here;
        end if;
        here.room := least(here.room, 1 + floor(extract(epoch from now_at - free_at) / extract(epoch from here.step))::integer);
    end if;
    return here;
end
$$;

create or replace function postbus_data.channel_statement(stream postbus_data.stream, name text, source text)
returns text
language sql
immutable
as $$
/*
The query that looks at messages of a stream with channels; it returns fresh_messages.

name    scan_channels or read_channel: see the templates.
source  the table or query that has the messages.

Its parameters are: $1 the consumer, $2 the partition, $3 and $4 the range of seqs, $5 how many messages to look at, $6 how many to take, $7 the channel (of
read_channel), $8 the channels of messages in flight, $9 the time, $10 whether there are limits, $11 the quantum.
*/
    select postbus_data.render(
        case name when 'scan_channels' then postbus_data.scan_channels_template() else postbus_data.read_channel_template() end,
        jsonb_build_object(
            'log_table', source,
            'channel', postbus_data.channel_expression('l.key', stream.channel_tokens),
            'matches_data', case stream.data_type
                when 'json' then $match$(
                $1.filter_data is null
                or coalesce(jsonb_path_query_first(postbus_data.as_jsonb(l.data::text), $1.filter_data, '{}', true), 'false') not in ('false', 'null')
            )$match$
                else 'true'
            end
        )
    )
$$;

create or replace function postbus_data.check_channel_consumer(settings postbus_data.consumer)
returns boolean
language plpgsql
volatile
as $$
/*
Whether a consumer is by channel: it is fair, or its stream has limits of channels.

Raises   PB409 for a fair consumer of a stream without channels, and for an order other than none where there are turns or limits.
Locks    a stream with channels, shared, until the transaction ends: set_channel waits, and finds the consumer.
*/
#variable_conflict use_variable
declare
    channel_tokens integer := (select s.channel_tokens from postbus_data.stream as s where s.id = settings.stream_id);
begin
    if channel_tokens is null then
        if settings.fair then
            raise exception using
                errcode = 'PB409',
                message = format('stream "%s" has no channels, which could take turns', settings.stream_name),
                hint = 'channel_tokens, how many leading tokens of the key name the channel, is set when a stream is created';
        end if;
        return false;
    end if;
    perform from postbus_data.stream as s where s.id = settings.stream_id for share;
    if settings.is_group or not (settings.fair or exists (select from postbus_data.channel as c where c.stream_id = settings.stream_id)) then
        return false;
    end if;
    perform postbus_data.check_channel_order(settings.ordering, settings.is_group, settings.stream_name, settings.name);
    return true;
end
$$;

create or replace function postbus_data.check_channel_order(ordering text, is_group boolean, stream text, consumer text)
returns void
language plpgsql
immutable
as $$
/* Refuse (PB409) a consumer whose order allows neither turns nor limits of channels. Groups have none: they read by position. */
begin
    if ordering <> 'none' and not is_group then
        raise exception using
            errcode = 'PB409',
            message = format('consumer "%s" of stream "%s" reads in order "%s", and limits of channels need order "none"', consumer, stream, ordering),
            hint = 'a channel with max_concurrency 1 has one message in flight at a time';
    end if;
end
$$;

create or replace function postbus_data.check_channels(entry postbus_data.publish_target, keys text[], priorities integer[], is_batch boolean)
returns void
language plpgsql
immutable
as $$
/* Refuse what a stream with channels does not take: a message without a key, or with a priority other than 4 (PB400). */
declare
    place integer := array_position(keys, null);
begin
    if keys is null or place is not null then
        raise exception using
            errcode = 'PB400',
            message = format(
                '%s is not allowed: it has no key', postbus_data.message_name(case when is_batch then coalesce(place, 1) end)
            ),
            hint = 'the stream has channels, and the leading tokens of the key name the channel';
    end if;
    if exists (select from unnest(priorities) as p where p <> 4) then
        raise exception using
            errcode = 'PB400',
            message = 'a stream with channels has no priorities',
            hint = 'channels take turns instead; give an urgent tenant a larger weight';
    end if;
end
$$;

create or replace function postbus_data.choose_fresh(reader postbus_data.consumer, claim postbus_data.channel_claim, full_at integer)
returns postbus_data.channel_claim
language plpgsql
volatile
as $$
/*
Choose new messages of a partition, of channels that have no turn waiting, in the order of their seqs. A channel that has more than it may have now gets a
turn, so that the position can pass over it.

full_at  how many messages may be in flight or chosen, in all.

Its caller holds the partition's mutex, and writes the position.
Touches  turn, dead_letter, channel_pace (insert).
*/
#variable_conflict use_variable
declare
    place postbus_data.position := claim.place;
    last_turn bigint;
    scan integer := full_at - cardinality(claim.in_flight) + 7;
    found_here record;
    looked postbus_data.fresh_messages;
begin
    while cardinality(claim.in_flight) < full_at and claim.scan_left > 0 loop
        if place.read_to_seq >= place.horizon then
            if claim.horizon is null
                and place.horizon < pg_sequence_last_value(to_regclass('postbus_data.seq_' || reader.stream_id))
            then
                claim.horizon := postbus_data.horizon_of(reader.stream_id);
            end if;
            place.horizon := greatest(place.horizon, claim.horizon);
            exit when place.read_to_seq >= place.horizon;
        end if;
        select l.looked as messages, l.segment
        into found_here
        from postbus_data.look_at_channels(reader, claim, place.read_to_seq, place.horizon, scan, full_at - cardinality(claim.in_flight), null) as l;
        looked := found_here.messages;
        if looked.seqs is not null then
            claim := postbus_data.note_chosen(reader, claim, looked.seqs, looked.channels, found_here.segment);
        end if;
        if looked.late is not null then
            last_turn := (claim.state).last_turn;
            insert into postbus_data.turn (consumer_id, epoch, partition, channel, n, after_seq)
            select place.consumer_id, place.epoch, place.partition, u.channel, last_turn + u.place, u.after_seq
            from unnest(looked.late, looked.late_after) with ordinality as u (channel, after_seq, place);
            claim.state.last_turn := last_turn + cardinality(looked.late);
        end if;
        place := postbus_data.count_expired(reader, place, looked.expired);
        place.read_to_seq := looked.last_seq;
        claim.is_changed := true;
        claim.scan_left := claim.scan_left - looked.scanned - 16;
        scan := least(4 * scan, 16384);
    end loop;
    claim.place := place;
    return claim;
end
$$;

create or replace function postbus_data.choose_retries(
    reader postbus_data.consumer,
    claim postbus_data.channel_claim,
    channel text,
    wanted integer
)
returns postbus_data.channel_claim
language plpgsql
volatile
as $$
/* Choose messages of a channel that are due for redelivery, in the order in which they came due. Touches due (delete); as note_chosen. */
#variable_conflict use_variable
declare
    seqs bigint[];
    attempts integer[];
begin
    -- By their places, as a join might be planned otherwise: rows of due are never updated.
    with taken as (
        delete from postbus_data.due as d
        where d.ctid = any (array(
            select o.ctid
            from postbus_data.due as o
            where o.consumer_id + 0 = reader.id
                and o.epoch = reader.epoch
                and o.channel = channel
            order by o.n
            limit wanted
        ))
        returning d.n, d.seq, d.attempts
    )
    select array_agg(t.seq order by t.n), array_agg(t.attempts + 1 order by t.n) into seqs, attempts from taken as t;
    if seqs is null then
        return claim;
    end if;
    claim.retried := claim.retried || seqs;
    claim.attempts := claim.attempts || attempts;
    claim.in_flight := claim.in_flight || array_fill(channel, array[cardinality(seqs)]);
    claim.is_changed := true;
    if claim.has_limits then
        perform postbus_data.use_channels(reader, array_fill(channel, array[cardinality(seqs)]), claim.now_at);
    end if;
    return claim;
end
$$;

create or replace function postbus_data.choose_turns(reader postbus_data.consumer, claim postbus_data.channel_claim, full_at integer)
returns postbus_data.channel_claim
language plpgsql
volatile
as $$
/*
Choose messages of the channels that wait for their turn, in the order of their turns, as many of each as its quantum and its limits leave. A channel that has
more goes to the end; one that a limit holds rests.

full_at  how many messages may be in flight or chosen, in all.

Its caller holds the partition's mutex, and writes the position.
Touches  turn (delete, insert); as take_turn.
*/
#variable_conflict use_variable
declare
    next_turn postbus_data.turn;
begin
    while cardinality(claim.in_flight) < full_at loop
        select t.*
        into next_turn
        from postbus_data.turn as t
        where t.consumer_id + 0 = reader.id
            and t.epoch = reader.epoch
            and t.partition = (claim.place).partition
            and t.ready_at is null
            and t.n > (claim.state).turned_to
        order by t.n
        limit 1;
        exit when not found;
        delete from postbus_data.turn as t
        where t.consumer_id = next_turn.consumer_id
            and t.epoch = next_turn.epoch
            and t.partition = next_turn.partition
            and t.channel = next_turn.channel
            and t.n = next_turn.n;
        claim.state.turned_to := next_turn.n;
        claim.is_changed := true;
        claim := postbus_data.take_turn(reader, claim, next_turn, full_at - cardinality(claim.in_flight));
    end loop;
    return claim;
end
$$;

create or replace function postbus_data.claim_channel_partition(
    reader postbus_data.consumer,
    claim postbus_data.receive_state,
    partition integer,
    wanted integer
)
returns postbus_data.receive_state
language plpgsql
volatile
as $$
/*
Lease messages of one partition for a consumer by channel.

New channels and those that wait for their turn share a receive; where it takes one message only, they alternate. A consumer that is not fair serves the
channels that a limit had held, and then the others in the order of their messages.

Locks    the partition's mutex; the claim is busy when another session holds it. Everything that it decides on is read in later statements, with younger
         snapshots: what is in flight, the limits and the turns.
Returns  the claim, with its batch; without one if there is nothing.
*/
#variable_conflict use_variable
declare
    here postbus_data.channel_claim;
    full_at integer;
    for_fresh integer;
    has_turns boolean;
begin
    claim.batch := null;
    claim.busy := not pg_try_advisory_xact_lock(postbus_data.consumer_lock_class(reader.id), partition);
    if claim.busy then
        return claim;
    end if;
    here := postbus_data.begin_channel_claim(reader, claim, partition);
    wanted := least(wanted, claim.quota - cardinality(here.in_flight), (select 900000000 / s.max_message_bytes from postbus_data.stream as s where s.id = reader.stream_id));
    if wanted <= 0 or here.place is null then
        return claim;
    end if;
    here.quantum := case when reader.fair then greatest(1, wanted / 4) end;
    here := postbus_data.wake_channels(reader, here);
    full_at := cardinality(here.in_flight) + wanted;
    has_turns := exists (
        select
        from postbus_data.turn as t
        where t.consumer_id + 0 = reader.id
            and t.epoch = reader.epoch
            and t.partition = partition
            and t.ready_at is null
            and t.n > (here.state).turned_to
    );
    for_fresh := case
        when not reader.fair then 0
        when not has_turns then wanted
        when wanted = 1 then case when (here.state).turns_first then 0 else 1 end
        else (wanted + 1) / 2
    end;
    if for_fresh > 0 then
        here := postbus_data.choose_fresh(reader, here, cardinality(here.in_flight) + for_fresh);
    end if;
    if has_turns and wanted = 1 then
        here.state.turns_first := here.seqs is not null;
    end if;
    here := postbus_data.choose_turns(reader, here, full_at);
    -- What the turns have left over.
    here := postbus_data.choose_fresh(reader, here, full_at);
    claim.horizon := here.horizon;
    return postbus_data.lease_channels(reader, claim, here);
end
$$;

create or replace function postbus_data.claim_channels(
    reader postbus_data.consumer,
    max_messages integer,
    ack_wait interval,
    expected_type text,
    begin_with integer
)
returns setof postbus_data.batch
language plpgsql
volatile
as $$
/*
What claim_batches does, for a consumer by channel: one that is fair, or whose stream has limits of channels.

Channels that have messages take turns within their partition, and a limit holds only its own channel.
*/
#variable_conflict use_variable
declare
    claim postbus_data.receive_state := postbus_data.begin_claim(reader, max_messages, ack_wait, expected_type);
    partition_count integer := postbus_data.layout_count(claim.layout);
    first integer := coalesce(begin_with - postbus_data.layout_base(claim.layout), floor(random() * partition_count)::integer);
    wait_until timestamptz := clock_timestamp() + interval '100 milliseconds';
    remaining integer := max_messages;
    busy_ones integer[];
    awaited integer[];
    partition integer;
begin
    if reader.expire_after is not null then
        perform postbus_data.note_use(reader);
    end if;
    if reader.paused then
        return;
    end if;
    if claim.quota is null then
        remaining := postbus_data.free_capacity(reader, max_messages);
    end if;
    perform case when random() < 0.1 then postbus_data.sweep_now_and_then(reader) end;
    while remaining > 0 loop
        busy_ones := '{}';
        for step in 0 .. partition_count - 1 loop
            partition := postbus_data.layout_base(claim.layout) + mod(first + step, partition_count);
            continue when not partition = any (awaited);
            claim := postbus_data.claim_channel_partition(reader, claim, partition, remaining);
            if claim.busy then
                busy_ones := busy_ones || partition;
            elsif (claim.batch).seqs is not null then
                return next claim.batch;
                remaining := remaining - cardinality((claim.batch).seqs);
            end if;
            exit when remaining <= 0;
        end loop;
        exit when remaining < max_messages;

        -- Nothing found. Before saying so, wait for the partitions that others hold, and sweep what has expired.
        if busy_ones <> '{}' then
            exit when clock_timestamp() > wait_until;
            awaited := busy_ones;
            perform pg_sleep(0.0005);
        else
            exit when postbus_data.sweep_consumer(reader) = 0;
            awaited := null;
        end if;
        claim.horizon := null;
    end loop;
end
$$;

create or replace function postbus_data.count_channel(
    reader postbus_data.consumer,
    partition integer,
    channel text,
    after_seq bigint,
    at_most integer,
    out message_count bigint,
    out estimate bigint
)
language plpgsql
stable
set enable_seqscan = off
set enable_bitmapscan = off
as $$
/*
How many messages of a channel wait for their turn: those above after_seq, up to the position of the partition. At most so many are counted; the estimate takes
the others to be as dense as these. A filter by data is not evaluated.
*/
#variable_conflict use_variable
declare
    upto bigint := (
        select p.read_to_seq
        from postbus_data.position as p
        where p.consumer_id = reader.id
            and p.epoch = reader.epoch
            and p.partition = partition
        order by p.read_to_seq desc
        limit 1
    );
    tokens integer;
    segment integer;
    here record;
begin
    message_count := 0;
    select s.channel_tokens, greatest(after_seq, s.start_seq - 1) into tokens, after_seq from postbus_data.stream as s where s.id = reader.stream_id;
    for segment in
        select g.number
        from postbus_data.segment as g
        where g.stream_id = reader.stream_id
            and (g.last_seq > after_seq or g.sealed_at is null)
            and g.after_seq < upto
        order by g.number
    loop
        execute format(
            'select count(*), max(m.seq) as last_seq
            from (
                select l.seq
                from %s as l
                where %s = $1
                    and l.seq > $2
                    and l.seq <= $3
                    and (l.expires_at is null or l.expires_at > clock_timestamp())
                    and ($5.filter_key_regex is null or coalesce(l.key ~ $5.filter_key_regex, false))
                    and ($5.filter_headers is null or coalesce(l.headers @> $5.filter_headers, false))
                    and ($5.filter_headers_not is null or not coalesce(l.headers @> any ($5.filter_headers_not), false))
                order by l.seq
                limit $4
            ) as m',
            postbus_data.log_table(reader.stream_id, segment), postbus_data.channel_expression('l.key', tokens)
        )
        into here
        using channel, after_seq, upto, at_most - message_count, reader;
        message_count := message_count + here.count;
        exit when message_count >= at_most;
    end loop;
    estimate := message_count;
    if message_count >= at_most then
        estimate := message_count + (message_count * (upto - here.last_seq)::numeric / greatest(1, here.last_seq - after_seq))::bigint;
    end if;
end
$$;

create or replace function postbus_data.count_expired(reader postbus_data.consumer, place postbus_data.position, expired bigint[])
returns postbus_data.position
language plpgsql
volatile
as $$
/* Count messages whose time to live was over when they were reached, or make them dead letters, as the consumer says. */
declare
    message_seq bigint;
begin
    foreach message_seq in array coalesce(expired, '{}') loop
        place.expired_count := place.expired_count + 1;
        if reader.on_expired = 'bury' then
            perform postbus_data.add_dead_letter(reader, place.partition, message_seq, 0, 'its time to live was over');
        end if;
    end loop;
    return place;
end
$$;

create or replace function postbus_data.count_lagging(reader postbus_data.consumer, out lagging bigint, out is_exact boolean)
language plpgsql
stable
set enable_seqscan = off
set enable_bitmapscan = off
as $$
/*
How many messages a consumer by channel has passed over, to be delivered when it is their channel's turn. Exact up to 1,000 messages; beyond, each channel is
taken to be as dense as its first messages, and of more than 200 channels the others to be like the first ones.
*/
#variable_conflict use_variable
declare
    waiting record;
    here record;
    looked_at bigint := 0;
    channels bigint;
begin
    lagging := 0;
    is_exact := true;
    for waiting in
        select t.partition, t.channel, t.after_seq
        from postbus_data.turn as t
        where t.consumer_id = reader.id
            and t.epoch = reader.epoch
        limit 200
    loop
        select c.* into here from postbus_data.count_channel(reader, waiting.partition, waiting.channel, waiting.after_seq, 1000) as c;
        lagging := lagging + here.estimate;
        is_exact := is_exact and here.message_count < 1000;
        looked_at := looked_at + 1;
    end loop;
    if looked_at = 200 then
        select count(*) into channels from postbus_data.turn as t where t.consumer_id = reader.id and t.epoch = reader.epoch;
        is_exact := is_exact and channels = looked_at;
        lagging := lagging * channels / looked_at;
    end if;
end
$$;

create or replace function postbus_data.create_channel_functions(stream postbus_data.stream, number integer)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
/*
Write the functions that read one segment of a stream with channels, planned once for a session as the segment's claim function is:

postbus_data.scan_channels_<stream id>_<number>   looks at new messages of a partition
postbus_data.read_channel_<stream id>_<number>    looks at the next messages of one channel
postbus_data.fetch_channels_<stream id>_<number>  reads messages by their seqs

The first two have the arguments of channel_statement.
*/
#variable_conflict use_variable
declare
    statement text;
    name text;
begin
    foreach name in array array['scan_channels', 'read_channel'] loop
        execute format(
            'create or replace function postbus_data.%s_%s_%s(
                postbus_data.consumer, integer, bigint, bigint, integer, integer, text, text[], timestamptz, boolean, integer
            )
            returns postbus_data.fresh_messages
            language plpgsql
            volatile
            as $body$
            declare
                found_messages postbus_data.fresh_messages;
            begin
                select m.* into found_messages from (%s) as m;
                return found_messages;
            end
            $body$',
            name, stream.id, number, postbus_data.channel_statement(stream, name, postbus_data.log_table(stream.id, number))
        );
    end loop;
    execute format(
        'create or replace function postbus_data.fetch_channels_%s_%s(partition integer, seqs bigint[])
        returns postbus_data.batch
        language plpgsql
        volatile
        as $body$
        #variable_conflict use_variable
        declare
            batch postbus_data.batch;
        begin
            select array_agg(m.seq), array_agg(m.key), array_agg(m.data), array_agg(m.headers), array_agg(m.published_at)
            into batch.seqs, batch.keys, batch.%s, batch.headers, batch.published_at
            from (
                select l.seq, l.key, l.data::%s as data, l.headers, l.published_at
                from %s as l
                where l.partition = partition
                    and l.seq = any (seqs)
                order by l.seq
            ) as m;
            batch.partition := partition;
            return batch;
        end
        $body$',
        stream.id, number, case stream.data_type when 'bytes' then 'bytes' else 'data' end,
        case stream.data_type when 'bytes' then 'bytea' else 'text' end, postbus_data.log_table(stream.id, number)
    );
end
$$;

create or replace function postbus_data.give_turn(state postbus_data.channel_position, resting postbus_data.turn)
returns postbus_data.channel_position
language plpgsql
volatile
as $$
/*
Let a channel that has rested take its turn behind those that wait.

Its caller holds the partition's mutex, and writes the state.
Touches  turn (delete, insert).
*/
begin
    delete from postbus_data.turn as t
    where t.consumer_id = resting.consumer_id
        and t.epoch = resting.epoch
        and t.partition = resting.partition
        and t.channel = resting.channel
        and t.n = resting.n;
    state.last_turn := state.last_turn + 1;
    insert into postbus_data.turn (consumer_id, epoch, partition, channel, n, after_seq)
    values (resting.consumer_id, resting.epoch, resting.partition, resting.channel, state.last_turn, resting.after_seq);
    return state;
end
$$;

create or replace function postbus_data.go_by_channel(consumer_id integer)
returns void
language plpgsql
volatile
as $$
/*
Make a consumer one by channel, while it is in use: what is in flight then is listed, with keys, and counts towards limits from the first
claim on. There is no way back: positions pass over channels that have a turn waiting.

Touches  consumer, lease, waiting (update), due (delete), waiting, channel_position, position (insert; delete of the last one).
Locks    the mutexes of its partitions, redeliveries and sweeps, until the transaction ends. A receive that began before finds a position that it cannot use,
         and looks at the consumer again.
*/
#variable_conflict use_variable
declare
    reader postbus_data.consumer;
    place postbus_data.position;
    state postbus_data.channel_position;
    lock_class integer := postbus_data.consumer_lock_class(consumer_id);
begin
    update postbus_data.consumer as c set by_channel = true where c.id = consumer_id and not c.by_channel returning c.* into reader;
    if not found then
        return;
    end if;
    perform pg_advisory_xact_lock(lock_class, postbus_data.consumer_lock('sweep'));
    perform pg_advisory_xact_lock(lock_class, postbus_data.consumer_lock('redeliver'));
    perform pg_advisory_xact_lock(lock_class, p)
    from generate_series(reader.partition_base, reader.partition_base + reader.partition_count - 1) as p;

    with taken as (
        delete from postbus_data.due as d where d.consumer_id = reader.id returning d.*
    )
    insert into postbus_data.waiting (consumer_id, partition, seq, attempts, due_at, token)
    select t.consumer_id, t.partition, t.seq, t.attempts, clock_timestamp(), t.token
    from taken as t
    on conflict on constraint waiting_pkey do nothing;
    update postbus_data.waiting as w
    set key = (postbus_data.find_message(reader.stream_id, w.seq)).key
    where w.consumer_id = reader.id
        and w.key is null;
    update postbus_data.lease as l
    set keys = array(
        select (postbus_data.find_message(reader.stream_id, m.seq)).key from unnest(l.seqs) with ordinality as m (seq, place) order by m.place
    )
    where l.consumer_id + 0 = reader.id
        and l.epoch = reader.epoch
        and l.keys is null;
    for partition in reader.partition_base .. reader.partition_base + reader.partition_count - 1 loop
        place := postbus_data.position_of(reader, partition);
        place.segment := 0;
        place.leases := '{}';
        perform postbus_data.write_position(place, place.read_to_seq);
        state := postbus_data.channel_position_of(reader, partition);
        state.n := state.n + 1;
        state.leases := array(
            select distinct l.token
            from postbus_data.lease as l
            where l.consumer_id + 0 = reader.id
                and l.epoch = reader.epoch
                and l.partition = partition
        );
        insert into postbus_data.channel_position select state.*;
    end loop;
end
$$;

create or replace function postbus_data.has_turn(reader postbus_data.consumer)
returns boolean
language sql
volatile
as $$
/*
Whether a channel may have a turn: one waits for it, one rests until a message in flight is finished (which may have happened), one has rested long enough, or
retries have come due.
*/
    select exists (
        select
        from generate_series(reader.partition_base, reader.partition_base + reader.partition_count - 1) as p (n)
        cross join lateral postbus_data.channel_position_of(reader, p.n) as state
        where exists (
                select
                from postbus_data.turn as t
                where t.consumer_id + 0 = reader.id
                    and t.epoch = reader.epoch
                    and t.partition = p.n
                    and t.ready_at is null
                    and t.n > state.turned_to
            )
            or exists (
                select
                from postbus_data.turn as t
                where t.consumer_id + 0 = reader.id
                    and t.epoch = reader.epoch
                    and t.partition = p.n
                    and t.ready_at = '-infinity'
            )
            or exists (
                select
                from postbus_data.turn as t
                where t.consumer_id + 0 = reader.id
                    and t.epoch = reader.epoch
                    and t.partition = p.n
                    and t.ready_at > state.rested_to
                    and t.ready_at <= clock_timestamp()
            )
            or postbus_data.has_due(reader.id, reader.epoch, postbus_data.channel_lane(p.n))
    )
$$;

create or replace function postbus_data.lease_channels(
    reader postbus_data.consumer,
    claim postbus_data.receive_state,
    here postbus_data.channel_claim
)
returns postbus_data.receive_state
language plpgsql
volatile
as $$
/*
Lease the messages that a claim by channel has chosen, those that failed before first, and write the position.

Returns  the claim, with the batch.
Touches  lease, channel_position, position (insert; delete of the last one), dead_letter (insert).
*/
#variable_conflict use_variable
declare
    token bigint := postbus_data.new_token();
    place postbus_data.position := here.place;
    batch postbus_data.batch;
    messages postbus.delivery[];
begin
    if not here.is_changed then
        return claim;
    end if;
    if here.retried is null and here.segment is not null then
        execute 'select b.* from postbus_data.fetch_channels_' || reader.stream_id || '_' || here.segment || '($1, $2) as b'
        into batch
        using place.partition, here.seqs;
    elsif here.retried is not null or here.seqs is not null then
        if here.retried is not null then
            messages := postbus_data.fetch_named(reader.stream_id, here.data_type, place.partition, here.retried, here.attempts, token, live_only => true);
            perform postbus_data.add_dead_letters_without_message(reader, place.partition, here.retried, here.attempts, messages);
        end if;
        if here.seqs is not null then
            messages := messages || postbus_data.fetch_named(
                reader.stream_id, here.data_type, place.partition, here.seqs, array_fill(1, array[cardinality(here.seqs)]), token
            );
        end if;
        select array_agg(m.seq), array_agg(m.attempt), array_agg(m.key), array_agg(m.data), array_agg(m.bytes), array_agg(m.headers), array_agg(m.published_at)
        into batch.seqs, batch.attempts, batch.keys, batch.data, batch.bytes, batch.headers, batch.published_at
        from unnest(messages) as m;
        batch.partition := place.partition;
        if here.data_type = 'bytes' then
            batch.data := null;
        else
            batch.bytes := null;
        end if;
        batch.attempts := case when here.retried is not null then batch.attempts end;
    end if;
    if batch.seqs is not null then
        batch.lease := lpad(to_hex(token), 16, '0');
        insert into postbus_data.lease (
            token, consumer_id, epoch, partition, seqs, keys, attempts, received_at, deadline, has_history, has_saved
        )
        values (
            token, reader.id, reader.epoch, place.partition, batch.seqs, batch.keys, batch.attempts, clock_timestamp(), claim.lease_until,
            reader.keep_history is not null, here.retried is not null and postbus_data.has_saved(reader.id, batch.seqs)
        );
        here.state.leases := (here.state).leases || token;
    end if;
    if place is distinct from here.began then
        place.pending_bound := cardinality(here.in_flight);
        delete from postbus_data.position as p
        where p.consumer_id = place.consumer_id
            and p.epoch = place.epoch
            and p.partition = place.partition
            and p.read_to_seq = (here.began).read_to_seq;
        insert into postbus_data.position select place.*;
    end if;
    delete from postbus_data.channel_position as p
    where p.consumer_id = place.consumer_id
        and p.epoch = place.epoch
        and p.partition = place.partition
        and p.n = (here.state).n;
    here.state.n := (here.state).n + 1;
    insert into postbus_data.channel_position select (here.state).*;
    claim.batch := batch;
    return claim;
end
$$;

create or replace function postbus_data.look_at_channels(
    reader postbus_data.consumer,
    claim postbus_data.channel_claim,
    after_seq bigint,
    to_seq bigint,
    scan integer,
    wanted integer,
    channel text,
    out looked postbus_data.fresh_messages,
    out segment integer
)
language plpgsql
volatile
as $$
/*
Look at new messages of a partition, or (with channel) at the next messages of one channel, with after_seq < seq <= to_seq: in the segment where the next ones
are, or in two, while late publishers may still write to the older one.

Returns  what was found, and the segment that has it; null for two.
*/
#variable_conflict use_variable
declare
    name text := case when channel is null then 'scan_channels' else 'read_channel' end;
    upto bigint := to_seq;
    next_after bigint;
    next_number integer;
    arguments text := '($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)';
begin
    segment := coalesce(
        (
            select g.number
            from postbus_data.segment as g
            where g.stream_id = reader.stream_id
                and g.last_seq > after_seq
            order by g.last_seq, g.number
            limit 1
        ),
        (
            select g.number
            from postbus_data.segment as g
            where g.stream_id = reader.stream_id
                and g.last_seq is null
            order by g.number
            limit 1
        )
    );
    select g.number, g.after_seq
    into next_number, next_after
    from postbus_data.segment as g
    where g.stream_id = reader.stream_id
        and g.number > segment
    order by g.number
    limit 1;
    -- The next segment may be prepared, and written to by nobody yet.
    if next_after <= after_seq and next_number <= postbus_data.layout_segment(pg_sequence_last_value(to_regclass('postbus_data.layout_' || reader.stream_id))) then
        upto := least(
            to_seq,
            (select min(g.after_seq) from postbus_data.segment as g where g.stream_id = reader.stream_id and g.number > next_number and g.after_seq > after_seq)
        );
        execute (
            select postbus_data.channel_statement(
                s, name,
                format(
                    '(select * from %s union all select * from %s)', postbus_data.log_table(s.id, segment), postbus_data.log_table(s.id, next_number)
                )
            )
            from postbus_data.stream as s
            where s.id = reader.stream_id
        )
        into looked
        using reader, (claim.place).partition, after_seq, upto, scan, wanted, channel, claim.in_flight, claim.now_at, claim.has_limits, claim.quantum;
        segment := null;
    else
        if next_after > after_seq then
            upto := least(to_seq, next_after);
        end if;
        execute 'select f.* from postbus_data.' || name || '_' || reader.stream_id || '_' || segment || arguments || ' as f'
        into looked
        using reader, (claim.place).partition, after_seq, upto, scan, wanted, channel, claim.in_flight, claim.now_at, claim.has_limits, claim.quantum;
    end if;
    looked.is_end := looked.is_end and upto = to_seq;
end
$$;

create or replace function postbus_data.next_turn_at(reader postbus_data.consumer, now_at timestamptz)
returns timestamptz
language sql
volatile
as $$
/* When the rate of a channel next lets it go on; null if none rests until a time. */
    select min(t.ready_at)
    from generate_series(reader.partition_base, reader.partition_base + reader.partition_count - 1) as p (n)
    cross join lateral (
        select t.ready_at
        from postbus_data.turn as t
        where t.consumer_id + 0 = reader.id
            and t.epoch = reader.epoch
            and t.partition = p.n
            and t.ready_at > now_at
            and t.ready_at < 'infinity'
        order by t.ready_at
        limit 1
    ) as t
$$;

create or replace function postbus_data.note_chosen(
    reader postbus_data.consumer,
    claim postbus_data.channel_claim,
    seqs bigint[],
    channels text[],
    segment integer
)
returns postbus_data.channel_claim
language plpgsql
volatile
as $$
/* Note messages that a claim has chosen: they count towards the limits of their channels at once. Touches channel_pace, see use_channels. */
begin
    claim.segment := case when claim.seqs is null or claim.segment = note_chosen.segment then note_chosen.segment end;
    claim.seqs := claim.seqs || note_chosen.seqs;
    claim.in_flight := claim.in_flight || channels;
    claim.is_changed := true;
    if claim.has_limits then
        perform postbus_data.use_channels(reader, channels, claim.now_at);
    end if;
    return claim;
end
$$;

create or replace function postbus_data.peek_lagging(reader postbus_data.consumer, after_seq bigint, max_messages integer)
returns setof postbus.peeked
language plpgsql
volatile
as $$
/*
The messages that a consumer by channel has passed over, to be delivered when it is their channel's turn: the first max_messages of each partition above a seq.
Of each segment, 10,000 messages are looked at.
*/
#variable_conflict use_variable
declare
    place record;
    segment record;
    found_here record;
    message postbus.delivery;
begin
    for place in
        select t.partition, min(t.after_seq) as after_seq, postbus_data.position_of(reader, t.partition) as position
        from postbus_data.turn as t
        where t.consumer_id = reader.id
            and t.epoch = reader.epoch
        group by t.partition
    loop
        for segment in
            select
                postbus_data.log_table(g.stream_id, g.number) as log, s.data_type, s.channel_tokens,
                greatest(place.after_seq, after_seq, s.start_seq - 1) as after_seq
            from postbus_data.segment as g
            join postbus_data.stream as s on s.id = g.stream_id
            where g.stream_id = reader.stream_id
                and (g.last_seq > greatest(place.after_seq, after_seq) or g.sealed_at is null)
                and g.after_seq < (place.position).read_to_seq
            order by g.number
        loop
            for found_here in
                execute format(
                    'select row(null, null, l.seq, l.partition, l.key, %s, l.headers, l.published_at, 0, null, null, 4)::postbus.delivery as message,
                        postbus_data.turn_reason(t, clock_timestamp()) as reason
                    from (select l.* from %s as l where l.partition = $2 and l.seq > $3 and l.seq <= $4 order by l.seq limit 10000) as l
                    join postbus_data.turn as t on t.consumer_id = $1.id
                        and t.epoch = $1.epoch
                        and t.partition = $2
                        and t.channel = postbus_data.channel_of(l.key, $5)
                        and t.after_seq < l.seq
                    where l.expires_at is null or l.expires_at > clock_timestamp()
                    order by l.seq
                    limit $6',
                    case when segment.data_type = 'bytes' then 'null, l.data' else 'l.data::text, null' end,
                    segment.log
                )
                using reader, place.partition, segment.after_seq, (place.position).read_to_seq, segment.channel_tokens, max_messages
            loop
                message := found_here.message;
                if postbus_data.passes(reader, message) then
                    return query
                    select
                        message.seq, message.partition, message.key, message.data, message.bytes, message.headers, message.published_at, 'available', 0,
                        null::timestamptz, found_here.reason, null::text, null::timestamptz, 0, null::text, null::bytea, 4;
                end if;
            end loop;
        end loop;
    end loop;
end
$$;

create or replace function postbus_data.release_channels(stream_id integer, pattern text)
returns void
language plpgsql
volatile
as $$
/*
Let all channels that match a pattern, and that a limit holds, be looked at again by the next claim, because their limits have changed.

Touches  turn (update).
Locks    the mutexes of the partitions of all consumers by channel, until the transaction ends: a claim that is under way ends under the old limits.
*/
#variable_conflict use_variable
declare
    reader postbus_data.consumer;
    regex text := postbus_data.pattern_regex(pattern);
begin
    for reader in
        select c.* from postbus_data.consumer as c where c.stream_id = stream_id and c.by_channel order by c.id
    loop
        perform pg_advisory_xact_lock(postbus_data.consumer_lock_class(reader.id), p)
        from generate_series(reader.partition_base, reader.partition_base + reader.partition_count - 1) as p;
        update postbus_data.turn as t
        set ready_at = clock_timestamp()
        where t.consumer_id = reader.id
            and t.epoch = reader.epoch
            and t.ready_at is not null
            and t.channel ~ regex;
    end loop;
end
$$;

create or replace function postbus_data.take_turn(
    reader postbus_data.consumer,
    claim postbus_data.channel_claim,
    turn postbus_data.turn,
    wanted integer
)
returns postbus_data.channel_claim
language plpgsql
volatile
as $$
/*
One turn of a channel: retries that are due for at most half of it, then its next messages.

turn    the row of the turn, which the caller has deleted.
wanted  how many messages there is room for in the receive: if that ends the turn early, the channel goes on first the next time.

Touches  turn (insert), due (delete), channel_pace, dead_letter (insert).
*/
#variable_conflict use_variable
declare
    here postbus_data.channel_room := postbus_data.channel_room(
        reader, turn.channel, claim.in_flight, claim.quantum, claim.has_limits, claim.now_at
    );
    -- Null for a consumer that is not fair: as many as there are.
    quantum integer := coalesce(turn.quantum_left, here.quantum);
    allowed integer := least(wanted, here.room, quantum);
    served integer := cardinality(claim.in_flight);
    has_retries boolean;
    is_done boolean := true;
    found_here record;
    looked postbus_data.fresh_messages;
    look integer := 0;
begin
    if here.room > 0 then
        claim := postbus_data.choose_retries(reader, claim, turn.channel, (allowed + 1) / 2);
        while turn.after_seq < (claim.place).read_to_seq loop
            look := look + 1;
            is_done := false;
            exit when served + allowed <= cardinality(claim.in_flight) or look > 16;
            select l.looked as messages, l.segment
            into found_here
            from postbus_data.look_at_channels(
                reader, claim, turn.after_seq, (claim.place).read_to_seq, 4 * allowed + 60, served + allowed - cardinality(claim.in_flight), turn.channel
            ) as l;
            looked := found_here.messages;
            if looked.seqs is not null then
                claim := postbus_data.note_chosen(
                    reader, claim, looked.seqs, array_fill(turn.channel, array[cardinality(looked.seqs)]), found_here.segment
                );
            end if;
            claim.place := postbus_data.count_expired(reader, claim.place, looked.expired);
            turn.after_seq := looked.last_seq;
            is_done := looked.is_end;
            exit when is_done;
        end loop;
        if served + allowed > cardinality(claim.in_flight) then
            claim := postbus_data.choose_retries(reader, claim, turn.channel, served + allowed - cardinality(claim.in_flight));
        end if;
    else
        is_done := false;
    end if;
    has_retries := exists (
        select
        from postbus_data.due as d
        where d.consumer_id + 0 = reader.id
            and d.epoch = reader.epoch
            and d.channel = turn.channel
    );
    if is_done and not has_retries then
        return claim;
    end if;
    served := cardinality(claim.in_flight) - served;
    if here.room > 0 and served = wanted and served < quantum and served < here.room then
        -- The receive is full. Its turn goes on.
        turn.quantum_left := quantum - served;
        claim.state.turned_to := turn.n - 1;
    else
        turn.quantum_left := null;
        claim.state.last_turn := (claim.state).last_turn + 1;
        turn.n := (claim.state).last_turn;
        if here.room <= served then
            here := postbus_data.channel_room(reader, turn.channel, claim.in_flight, claim.quantum, claim.has_limits, claim.now_at);
        end if;
    end if;
    turn.ready_at := greatest(here.ready_at, case when here.limited_by = 'rate' then (claim.state).rested_to + interval '1 microsecond' end);
    turn.limited_by := here.limited_by;
    turn.max_concurrency := here.max_concurrency;
    insert into postbus_data.turn select turn.*;
    return claim;
end
$$;

create or replace function postbus_data.turn_reason(turn postbus_data.turn, now_at timestamptz)
returns text
language sql
immutable
as $$
/* Why a message waits whose channel has a turn. */
    select case
        when turn.ready_at <= now_at and turn.ready_at > '-infinity' then 'its channel waits for its turn'
        when turn.limited_by = 'concurrency' then 'its channel has as many messages in flight as it may'
        when turn.limited_by = 'rate' then 'its channel has used up its rate'
        when turn.limited_by = 'paused' then 'its channel is paused'
        else 'its channel waits for its turn'
    end
$$;

create or replace function postbus_data.use_channels(reader postbus_data.consumer, channels text[], now_at timestamptz)
returns void
language plpgsql
volatile
as $$
/*
Charge the channels for the messages that are about to be leased, one name for each, to their rates.

Postgres does not wait for a claim to be flushed, if the library has asked so. In a crash a claim of a limited channel could then be forgotten while its
worker goes on, so this transaction waits after all.

Touches  channel_pace (insert; delete of the last row).
*/
#variable_conflict use_variable
declare
    used record;
    here postbus_data.channel_room;
    is_limited boolean := false;
begin
    for used in select u.channel, count(*) as message_count from unnest(channels) as u (channel) group by u.channel order by u.channel loop
        here := postbus_data.channel_room(reader, used.channel, '{}', null, true, now_at);
        is_limited := is_limited or here.max_concurrency is not null or here.step is not null;
        if here.step is not null then
            insert into postbus_data.channel_pace (consumer_id, channel, tat)
            values (reader.id, used.channel, here.tat + used.message_count * here.step)
            on conflict do nothing;
            delete from postbus_data.channel_pace as p
            where p.consumer_id = reader.id
                and p.channel = used.channel
                and p.tat < here.tat + used.message_count * here.step;
        end if;
    end loop;
    if is_limited and current_setting('synchronous_commit') = 'off' then
        is_limited := set_config('synchronous_commit', 'on', true) = 'on';
    end if;
end
$$;

create or replace function postbus_data.wake_channels(reader postbus_data.consumer, claim postbus_data.channel_claim)
returns postbus_data.channel_claim
language plpgsql
volatile
as $$
/*
Give a turn to the channels that a limit held and that may go on: some of their messages in flight are finished, or their time has come. So do channels
with retries that have come due, unless they have a turn already.

Its caller holds the partition's mutex, has read what is in flight under it, and writes the position.
Touches  turn (delete, insert), redelivery_position (insert; delete of the last one).
*/
#variable_conflict use_variable
declare
    place postbus_data.position := claim.place;
    lane integer := postbus_data.channel_lane(place.partition);
    retries postbus_data.redelivery_position := postbus_data.redelivery_position_of(reader, lane);
    last_n bigint;
    last_turn bigint := (claim.state).last_turn;
    added bigint;
    resting postbus_data.turn;
    rested_to timestamptz;
begin
    -- One by one: a join of those that rest with the table might be planned as a walk through all of it.
    for resting in
        select t.*
        from postbus_data.turn as t
        where t.consumer_id + 0 = reader.id
            and t.epoch = reader.epoch
            and t.partition = place.partition
            and t.ready_at = '-infinity'
            and cardinality(array_positions(claim.in_flight, t.channel)) < t.max_concurrency
        order by t.n
    loop
        claim.state := postbus_data.give_turn(claim.state, resting);
    end loop;
    for resting in
        select t.*
        from postbus_data.turn as t
        where t.consumer_id + 0 = reader.id
            and t.epoch = reader.epoch
            and t.partition = place.partition
            and t.ready_at > (claim.state).rested_to
            and t.ready_at <= claim.now_at
        order by t.ready_at
        limit 256
    loop
        -- Others may rest until the same moment.
        rested_to := resting.ready_at - interval '1 microsecond';
        claim.state := postbus_data.give_turn(claim.state, resting);
    end loop;
    claim.state.rested_to := greatest((claim.state).rested_to, rested_to);

    select max(d.n) into last_n
    from (
        select d.n
        from postbus_data.due as d
        where d.consumer_id = reader.id
            and d.epoch = reader.epoch
            and d.lane = lane
            and d.n > retries.read_to_n
        order by d.n
        limit 256
    ) as d;
    if last_n is not null then
        insert into postbus_data.turn (consumer_id, epoch, partition, channel, n, after_seq)
        select reader.id, reader.epoch, place.partition, c.channel, (claim.state).last_turn + row_number() over (order by c.n), place.read_to_seq
        from (
            select d.channel, min(d.n) as n
            from postbus_data.due as d
            where d.consumer_id = reader.id
                and d.epoch = reader.epoch
                and d.lane = lane
                and d.n > retries.read_to_n
                and d.n <= last_n
            group by d.channel
        ) as c
        where (
            select t.n
            from postbus_data.turn as t
            where t.consumer_id = reader.id
                and t.epoch = reader.epoch
                and t.partition = place.partition
                and t.channel = c.channel
            order by t.n desc
            limit 1
        ) is null;
        get diagnostics added = row_count;
        claim.state.last_turn := (claim.state).last_turn + added;
        delete from postbus_data.redelivery_position as p
        where p.consumer_id = reader.id
            and p.epoch = reader.epoch
            and p.lane = lane
            and p.read_to_n = retries.read_to_n;
        insert into postbus_data.redelivery_position (consumer_id, epoch, read_to_n, pending_bound, lane)
        values (reader.id, reader.epoch, last_n, 0, lane);
    end if;
    claim.is_changed := claim.is_changed or (claim.state).last_turn > last_turn or last_n is not null;
    return claim;
end
$$;

create or replace function postbus.list_channels(stream text, caller postbus.caller default postbus.current_caller())
returns table (pattern text, max_concurrency integer, max_rate integer, per interval, burst integer, weight integer, paused boolean)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
The limits of a stream's channels, by pattern: see set_channel. channel_states says how the channels themselves do.

Raises   PB403 without a right to the stream, PB404 for an unknown stream.
*/
#variable_conflict use_column
declare
    source integer := postbus_data.permitted_stream(caller, stream, 'consume', 'read', 'publish');
begin
    return query
    select c.pattern, c.max_concurrency, c.max_rate, c.per, c.burst, c.weight, c.paused
    from postbus_data.channel as c
    where c.stream_id = source
    order by c.pattern;
end
$$;

create or replace function postbus.pause_channel(stream text, pattern text)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Give out no messages of the channels that match a pattern, until resume_channel. Its other limits stay as they are; if it has none, it has those of the most
specific pattern that matches it, if there is one.

Raises   as set_channel.
Touches  as set_channel.
Locks    as set_channel.
*/
#variable_conflict use_variable
declare
    limits postbus_data.channel := postbus_data.channel_limits(postbus_data.stream_id(stream), pattern);
begin
    perform postbus.set_channel(
        stream, pattern, limits.max_concurrency, limits.max_rate, coalesce(limits.per, interval '1 second'), coalesce(limits.burst, 1),
        coalesce(limits.weight, 1), true
    );
end
$$;

create or replace function postbus.remove_channel(stream text, pattern text)
returns boolean
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Remove the limits of a pattern, from the next receive on. Channels that it matched have those of another pattern, or none.

Returns  whether the pattern had limits.
Raises   PB404 for an unknown stream.
Touches  channel (delete), turn (update).
Locks    the mutexes of the stream's consumers until the transaction ends.
*/
#variable_conflict use_variable
declare
    limited integer := postbus_data.stream_id(stream);
begin
    delete from postbus_data.channel as c where c.stream_id = limited and c.pattern = pattern;
    if not found then
        return false;
    end if;
    perform postbus_data.release_channels(limited, pattern);
    return true;
end
$$;

create or replace function postbus.resume_channel(stream text, pattern text)
returns boolean
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Let a paused pattern of channels go on, with the limits that it has; remove_channel removes these.

Returns  whether it was paused.
Raises   PB404 for an unknown stream.
Touches  channel, turn (update).
Locks    the mutexes of the stream's consumers until the transaction ends.
*/
#variable_conflict use_variable
declare
    limited integer := postbus_data.stream_id(stream);
begin
    update postbus_data.channel as c set paused = false where c.stream_id = limited and c.pattern = pattern and c.paused;
    if not found then
        return false;
    end if;
    perform postbus_data.release_channels(limited, pattern);
    return true;
end
$$;

create or replace function postbus.set_channel(
    stream text,
    pattern text,
    max_concurrency integer default null,
    max_rate integer default null,
    per interval default interval '1 second',
    burst integer default 1,
    weight integer default 1,
    paused boolean default false
)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Set the limits of the channels of a stream whose names match a pattern, in place of those that the pattern had. They count from the next receive on; of
several patterns that match a channel, only the most specific counts, and a channel that none matches has no limits.

pattern          the name of a channel, or a pattern of names: "*" is one token, ">" one or more at the end.
max_concurrency  how many messages of a channel a consumer may have in flight at once. What is in flight already may be finished.
max_rate, per    how many it gets of a channel in each such time, retries included.
burst            how many it gets at once after a pause: in any time t at most burst + max_rate × t / per. With 1, they are evenly spaced.
weight           how much of a turn a channel has, where a consumer is fair.
paused           it gets none.

They hold for each consumer by itself, and not for groups.

Raises   PB400 for a limit out of range or a pattern that is not allowed, PB404 for an unknown stream, PB409 for a stream without channels, or with a consumer
         in another order than none.
Touches  channel (insert or update), turn (update); as go_by_channel for consumers that are not by channel yet.
Locks    the stream's row and the mutexes of the stream's consumers until the transaction ends; keep it short.
*/
#variable_conflict use_variable
declare
    limited integer := postbus_data.stream_id(stream);
    reader record;
    problem text;
begin
    problem := case
        when max_concurrency not between 1 and 1000000 then format('max_concurrency = %s is not between 1 and 1000000', max_concurrency)
        when max_rate not between 1 and 1000000 then format('max_rate = %s is not between 1 and 1000000', max_rate)
        when (per between interval '1 millisecond' and interval '30 days') is not true
            then format('per = %s is not between 1 millisecond and 30 days', coalesce(per::text, 'null'))
        when max_rate is not null and per / max_rate < interval '1 microsecond' then 'max_rate is more than one message per microsecond'
        when (burst between 1 and 1000000) is not true then format('burst = %s is not between 1 and 1000000', coalesce(burst::text, 'null'))
        when (weight between 1 and 1000) is not true then format('weight = %s is not between 1 and 1000', coalesce(weight::text, 'null'))
        when paused is null then 'paused cannot be null'
        when pattern is null then 'pattern cannot be null'
    end;
    if problem is not null then
        raise exception using errcode = 'PB400', message = problem;
    end if;
    if (select s.channel_tokens is null from postbus_data.stream as s where s.id = limited) then
        raise exception using
            errcode = 'PB409',
            message = format('stream "%s" has no channels', stream),
            hint = 'channel_tokens, how many leading tokens of the key name the channel, is set when a stream is created';
    end if;
    -- No consumer is created meanwhile, see add_consumer.
    perform from postbus_data.stream as s where s.id = limited for no key update;
    perform postbus_data.check_channel_order(c.ordering, c.is_group, stream, c.name) from postbus_data.consumer as c where c.stream_id = limited;
    insert into postbus_data.channel as c (stream_id, pattern, regex, rank, max_concurrency, max_rate, per, burst, weight, paused)
    values (
        limited, pattern, case when pattern ~ '[*>]' then postbus_data.pattern_regex(pattern) end, postbus_data.channel_rank(pattern), max_concurrency,
        max_rate, per, burst, weight, paused
    )
    on conflict on constraint channel_pkey do update
    set max_concurrency = excluded.max_concurrency,
        max_rate = excluded.max_rate,
        per = excluded.per,
        burst = excluded.burst,
        weight = excluded.weight,
        paused = excluded.paused;
    for reader in select c.id from postbus_data.consumer as c where c.stream_id = limited and not c.is_group and not c.by_channel order by c.id loop
        perform postbus_data.go_by_channel(reader.id);
    end loop;
    perform postbus_data.release_channels(limited, pattern);
end
$$;

create or replace function postbus.alter_consumer(
    stream text,
    consumer text,
    ack_wait interval default null,
    max_ack_pending integer default null,
    max_deliver integer default null,
    retain_dead interval default null,
    max_per_key integer default null,
    max_waiting integer default null,
    on_dead text default null,
    on_expired text default null,
    keep_unread boolean default null,
    expire_after interval default null,
    keep_history interval default null,
    dead_letters_to text default null,
    ageing interval default null,
    fair boolean default null,
    backoff interval[] default null,
    backoff_factor double precision default null,
    backoff_cap interval default null,
    backoff_jitter double precision default null,
    filter_key_pattern text default null,
    filter_headers jsonb default null,
    filter_headers_not jsonb default null,
    filter_data text default null,
    unset text[] default '{}'
)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Change settings of a consumer; null leaves a setting unchanged. See create_consumer for what each means.

New settings apply to deliveries and failures from now on, and a new filter to messages not delivered yet. A backoff is replaced
as a whole: its factor and cap are the ones given in this call. The ordering cannot be changed, because messages in flight were
delivered under it.

unset    the names of settings to clear: backoff, and those whose default in create_consumer is null.

Raises   PB400 for an invalid value, PB404 for an unknown stream or consumer, PB409 for a fair consumer of a stream without channels, or in another order
         than none.
Touches  consumer (update).
Locks    the consumer's row, so that of two calls at once neither undoes what the other changes.
*/
declare
    settings postbus_data.consumer;
    unknown text;
begin
    select u into unknown
    from unnest(unset) as u
    where u not in (
        'backoff', 'backoff_factor', 'backoff_cap', 'filter_key_pattern', 'filter_headers', 'filter_headers_not', 'filter_data',
        'max_deliver', 'retain_dead', 'max_per_key', 'expire_after', 'keep_history', 'dead_letters_to', 'ageing'
    )
    limit 1;
    if unknown is not null then
        raise exception using errcode = 'PB400', message = format('"%s" cannot be unset', unknown);
    end if;
    perform from postbus_data.consumer as c
    where c.stream_name = alter_consumer.stream
        and c.name = alter_consumer.consumer
    for no key update;
    settings := postbus_data.find_consumer(stream, consumer);
    settings.backoff := case when 'backoff' = any (unset) then '{}' else coalesce(backoff, settings.backoff) end;
    settings.backoff_factor := case
        when unset && array['backoff', 'backoff_factor'] then null
        when backoff is not null then backoff_factor
        else coalesce(backoff_factor, settings.backoff_factor)
    end;
    settings.backoff_cap := case
        when 'backoff_cap' = any (unset) then null
        when backoff is not null then backoff_cap
        else coalesce(backoff_cap, settings.backoff_cap)
    end;
    settings.backoff_jitter := coalesce(backoff_jitter, settings.backoff_jitter);
    if 'filter_key_pattern' = any (unset) then
        settings.filter_key_pattern := null;
        settings.filter_key_regex := null;
    end if;
    settings.filter_headers := case when 'filter_headers' = any (unset) then null else settings.filter_headers end;
    settings.filter_headers_not := case when 'filter_headers_not' = any (unset) then null else settings.filter_headers_not end;
    settings.filter_data := case when 'filter_data' = any (unset) then null else settings.filter_data end;
    settings := postbus_data.set_filter(settings, filter_key_pattern, filter_headers, filter_headers_not, filter_data);

    update postbus_data.consumer as c
    set
        ack_wait = coalesce(alter_consumer.ack_wait, c.ack_wait),
        max_ack_pending = coalesce(alter_consumer.max_ack_pending, c.max_ack_pending),
        max_deliver = case when 'max_deliver' = any (unset) then null else coalesce(alter_consumer.max_deliver, c.max_deliver) end,
        retain_dead = case when 'retain_dead' = any (unset) then null else coalesce(alter_consumer.retain_dead, c.retain_dead) end,
        max_per_key = case when 'max_per_key' = any (unset) then null else coalesce(alter_consumer.max_per_key, c.max_per_key) end,
        max_waiting = coalesce(alter_consumer.max_waiting, c.max_waiting),
        on_dead = coalesce(alter_consumer.on_dead, c.on_dead),
        on_expired = coalesce(alter_consumer.on_expired, c.on_expired),
        keep_unread = coalesce(alter_consumer.keep_unread, c.keep_unread),
        expire_after = case when 'expire_after' = any (unset) then null else coalesce(alter_consumer.expire_after, c.expire_after) end,
        keep_history = case when 'keep_history' = any (unset) then null else coalesce(alter_consumer.keep_history, c.keep_history) end,
        dead_letters_to = case when 'dead_letters_to' = any (unset) then null else coalesce(alter_consumer.dead_letters_to, c.dead_letters_to) end,
        ageing = case when 'ageing' = any (unset) then null else coalesce(alter_consumer.ageing, c.ageing) end,
        fair = coalesce(alter_consumer.fair, c.fair),
        backoff = settings.backoff,
        backoff_factor = settings.backoff_factor,
        backoff_cap = settings.backoff_cap,
        backoff_jitter = settings.backoff_jitter,
        filter_key_pattern = settings.filter_key_pattern,
        filter_key_regex = settings.filter_key_regex,
        filter_headers = settings.filter_headers,
        filter_headers_not = settings.filter_headers_not,
        filter_data = settings.filter_data
    where c.id = settings.id
    returning c.* into settings;
    perform postbus_data.check_consumer(settings);
    if not settings.by_channel and postbus_data.check_channel_consumer(settings) then
        perform postbus_data.go_by_channel(settings.id);
    end if;
end
$$;

create or replace function postbus.backlog(stream text, consumer text, caller postbus.caller default postbus.current_caller())
returns bigint
language sql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
How many messages a consumer or group has not finished: not delivered yet, in flight, waiting for redelivery, or parked behind their key.
Dead letters and scheduled messages do not count. One number, for alerts and autoscalers.

Returns  exact up to 1,000 messages that are not delivered yet, an estimate beyond; stats.backlog_is_exact says which. 0 is exact.
Raises   PB403 without the right to consume, PB404 for an unknown stream or consumer.
*/
    select b.backlog
    from postbus_data.count_backlog((postbus_data.permitted_consumer(caller, backlog.stream, backlog.consumer)).id) as b
$$;

create or replace function postbus.consumer_info(
    stream text,
    consumer text,
    caller postbus.caller default postbus.current_caller()
)
returns postbus.consumer_info
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
A consumer's settings.

Raises   PB403 without the right to consume, PB404 for an unknown stream or consumer.
*/
declare
    found_id integer := (postbus_data.permitted_consumer(caller, stream, consumer)).id;
    info postbus.consumer_info;
begin
    select i.* into info from postbus.list_consumers(stream) as i where i.id = found_id;
    return info;
end
$$;

create or replace function postbus.consumer_overview(
    stream text default null,
    after_stream text default '',
    after_name text default '',
    max_consumers integer default 200,
    caller postbus.caller default postbus.current_caller()
)
returns table (
    stream_name text,
    name text,
    is_group boolean,
    ordering text,
    paused boolean,
    backlog bigint,
    backlog_is_exact boolean,
    lag_estimate bigint,
    in_flight bigint,
    redelivering bigint,
    waiting bigint,
    dead bigint,
    oldest_unread_at timestamptz,
    oldest_in_flight_at timestamptz,
    timed_out bigint,
    by_priority jsonb
)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
A page of consumers with their current figures, in order of stream and name: at most max_consumers after this stream and name. Of one
stream, or for null of all on which the caller has the right to consume. The columns are those that stats reports for one.

redelivering  how many of the messages in flight were delivered before.
timed_out     how many deliveries have ended because their lease expired, since the last seek.
by_priority   how many messages are not delivered yet or waiting, by each priority in use.

Raises   PB403 without the right to consume, PB404 for an unknown stream.
*/
#variable_conflict use_column
declare
    listed integer := case when stream is not null then postbus_data.permitted_stream(caller, stream, 'consume') end;
begin
    return query
    select
        c.stream_name, c.name, c.is_group, c.ordering, c.paused, b.backlog, b.is_exact, b.unread, b.in_flight, b.redelivering, b.waiting, b.dead,
        b.oldest_unread_at, b.oldest_in_flight_at, b.timed_out, b.by_priority
    from (
        select c.*
        from postbus_data.consumer as c
        where (c.stream_name, c.name) > (after_stream, after_name)
            and case
                when listed is null then postbus_data.has_right(caller, c.stream_id, 'consume')
                else c.stream_id = listed
            end
        order by c.stream_name, c.name
        limit max_consumers
    ) as c
    cross join lateral postbus_data.count_backlog(c.id) as b
    order by c.stream_name, c.name;
end
$$;

create or replace function postbus.create_consumer(
    stream text,
    consumer text,
    ordering text default 'key',
    ack_wait interval default interval '30 seconds',
    max_ack_pending integer default 10000,
    max_deliver integer default null,
    retain_dead interval default null,
    max_per_key integer default null,
    max_waiting integer default 1000,
    on_dead text default 'continue',
    on_expired text default 'skip',
    keep_unread boolean default false,
    expire_after interval default null,
    keep_history interval default null,
    dead_letters_to text default null,
    ageing interval default null,
    fair boolean default false,
    backoff interval[] default '{}',
    backoff_factor double precision default null,
    backoff_cap interval default null,
    backoff_jitter double precision default 0,
    filter_key_pattern text default null,
    filter_headers jsonb default null,
    filter_headers_not jsonb default null,
    filter_data text default null,
    "start" text default null,
    from_seq bigint default null,
    from_time timestamptz default null,
    exist_ok boolean default false
)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Create a consumer of a stream. It costs publishers nothing. A setting whose default is null sets no limit, or is off. The ordering
cannot be altered later.

ordering         key: messages of a key in order, and a failed one holds its key. none: any message that is not in flight.
                 partition: one batch of a partition at a time, and a failed message holds its partition.
ack_wait         How long a delivery is leased before it may go to another worker.
max_ack_pending  How many messages may be in flight.
max_deliver      How many deliveries before a message becomes a dead letter.
retain_dead      How long dead letters are kept.
max_per_key      In order "key": how many messages of a key a batch may hold.
max_waiting      In order "key": how many messages may be parked behind others of their key before reading ahead stops.
on_dead          In order "key": a dead letter lets its key continue, or holds it until it is redriven or discarded.
on_expired       A message past its time to live is skipped (skip), or becomes a dead letter (bury).
keep_unread      The stream keeps what it has not finished, whatever its retention.
expire_after     It is removed when nobody has received from it for this long.
keep_history     How long history keeps the outcome of each delivery.
dead_letters_to  A stream that a copy of each new dead letter is published to.
ageing           A message gains a level of priority each time that it has waited this long.
fair             In order "none", of a stream with channels: channels that have messages take turns.
backoff          how long a message waits after each failure; backoff_factor, _cap and _jitter make the delay grow.
filter_…         which messages the consumer wants: a key pattern; headers that a message must have; headers that it must not
                 have; a JSON path that must yield an item other than false and null. Other messages are skipped.
start            earliest (the default) or latest; or give from_seq or from_time instead.
exist_ok         A consumer that exists is left as it is, and where it stands. Settings that are given must be its own.

Raises   PB400 for an invalid name or setting, PB404 for an unknown stream, PB409 when the consumer exists (with exist_ok: when a setting
         that is given differs). With start =>
         'latest', PB412 outside READ COMMITTED and PB503 on a standby.
Touches  consumer (insert).
*/
declare
    settings postbus_data.consumer;
begin
    settings.is_group := false;
    settings.stream_id := postbus_data.stream_id(stream);
    settings.stream_name := stream;
    settings.name := consumer;
    settings.ordering := ordering;
    settings.ack_wait := ack_wait;
    settings.max_ack_pending := max_ack_pending;
    settings.max_deliver := max_deliver;
    settings.retain_dead := retain_dead;
    settings.max_per_key := max_per_key;
    settings.max_waiting := max_waiting;
    settings.on_dead := on_dead;
    settings.on_expired := on_expired;
    settings.keep_unread := keep_unread;
    settings.expire_after := expire_after;
    settings.keep_history := keep_history;
    settings.dead_letters_to := dead_letters_to;
    settings.ageing := ageing;
    settings.fair := fair;
    settings.backoff := backoff;
    settings.backoff_factor := backoff_factor;
    settings.backoff_cap := backoff_cap;
    settings.backoff_jitter := backoff_jitter;
    settings.stream_id := (select s.id from postbus_data.stream as s where s.name = stream);
    settings := postbus_data.set_filter(settings, filter_key_pattern, filter_headers, filter_headers_not, filter_data);
    perform postbus_data.add_consumer(settings, "start", from_seq, from_time, exist_ok);
end
$$;

create or replace function postbus.drop_consumer(stream text, consumer text)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Remove a consumer with its position, leases, history and dead letters. Acks for it are refused from now on.

Raises   PB404 for an unknown stream or consumer.
Touches  consumer and all its rows (delete).
*/
declare
    dropped integer := (postbus_data.find_consumer(stream, consumer)).id;
begin
    delete from postbus_data.dead_letter as d where d.consumer_id = dropped;
    perform postbus_data.forget(dropped);
    delete from postbus_data.channel_pace as p where p.consumer_id = dropped;
    delete from postbus_data.history as h where h.consumer_id = dropped;
    delete from postbus_data.consumer as c where c.id = dropped;
end
$$;

create or replace function postbus.history(
    stream text,
    consumer text,
    outcome text default null,
    before_time timestamptz default null,
    max_messages integer default 100,
    caller postbus.caller default postbus.current_caller()
)
returns setof postbus.history_entry
language plpgsql
volatile
security definer
set enable_seqscan = off
set enable_bitmapscan = off
set search_path = pg_catalog, pg_temp
as $$
/*
The outcomes of a consumer's deliveries, newest first: acked, failed (the message is redelivered) or dead. They are kept for the
consumer's keep_history, starting when that was set.

outcome      only deliveries with this outcome.
before_time  only deliveries finished before this time.

last_error is why the delivery failed. For an acked message, it is why the message failed before.

Raises   PB400 for an argument out of range, PB403 without the right to consume, PB404 for an unknown stream or consumer.
*/
#variable_conflict use_variable
declare
    reader postbus_data.consumer := postbus_data.permitted_consumer(caller, stream, consumer);
    data_type text := (select s.data_type from postbus_data.stream as s where s.id = reader.stream_id);
    entry postbus_data.history;
    left_count integer := max_messages;
begin
    if outcome not in ('acked', 'failed', 'dead') or (max_messages between 1 and 10000) is not true then
        raise exception using
            errcode = 'PB400',
            message = format('outcome = %L or max_messages = %s is not allowed', outcome, coalesce(max_messages::text, 'null')),
            hint = 'outcome is acked, failed or dead; max_messages is between 1 and 10000';
    end if;
    for entry in
        select h.*
        from postbus_data.history as h
        where h.consumer_id = reader.id
            and h.finished_at < coalesce(before_time, 'infinity')
            and (outcome is null or h.outcome = outcome)
        order by h.finished_at desc
        limit max_messages
    loop
        return query
        select
            s.seq, entry.partition, m.key, m.data, m.bytes, m.headers, m.published_at, entry.outcome, s.attempt, entry.received_at,
            entry.finished_at, entry.finished_at - entry.received_at,
            case
                when entry.reason is not null then entry.reason
                when s.attempt > 1 then (
                    select h.reason
                    from postbus_data.history as h
                    where h.consumer_id = reader.id
                        and h.first_seq = s.seq
                        and h.reason is not null
                        and h.finished_at < entry.finished_at
                    order by h.finished_at desc
                    limit 1
                )
            end
        from (
            select s.seq, coalesce(s.attempt, 1) as attempt
            from unnest(entry.seqs, entry.attempts) as s (seq, attempt)
            order by s.seq desc
            limit left_count
        ) as s
        left join unnest(
            postbus_data.fetch_named(
                reader.stream_id, data_type, entry.partition, entry.seqs, array_fill(1, array[cardinality(entry.seqs)]), 0
            )
        ) as m on m.seq = s.seq
        order by s.seq desc;
        left_count := left_count - cardinality(entry.seqs);
        exit when left_count <= 0;
    end loop;
end
$$;

create or replace function postbus_data.add_consumer(
    settings postbus_data.consumer,
    "start" text,
    from_seq bigint,
    from_time timestamptz,
    exist_ok boolean
)
returns void
language plpgsql
as $$
/*
Create a consumer or a group with these settings. See create_consumer.

Raises   as create_consumer does.
Touches  consumer (insert).
*/
#variable_conflict use_variable
declare
    existing postbus_data.consumer;
    first_segment postbus_data.segment;
    new_id integer;
    what text;
begin
    perform postbus_data.check_name(case when settings.is_group then 'group' else 'consumer' end, settings.name);
    settings.stream_id := postbus_data.stream_id(settings.stream_name);
    perform postbus_data.check_consumer(settings);
    if settings.ordering = 'none' and (select s.one_message_per_key from postbus_data.stream as s where s.id = settings.stream_id) then
        raise exception using
            errcode = 'PB400',
            message = 'a stream with one message per key needs consumers in order "key" or "partition"',
            hint = 'in order "none" a later version could overtake one that is in flight';
    end if;
    settings.by_channel := postbus_data.check_channel_consumer(settings);
    if settings.ordering = 'partition' and not settings.is_group
        and exists (select from postbus_data.level as l where l.stream_id = settings.stream_id)
    then
        raise exception using
            errcode = 'PB409',
            message = format('ordering = ''partition'' is not possible: messages of several priorities were published to stream "%s"', settings.stream_name),
            hint = 'choose order "key" or "none", which know priorities, or a group, which reads all levels side by side';
    end if;

    if num_nonnulls("start", from_seq, from_time) = 0 then
        "start" := 'earliest';
    end if;
    settings.start_after := postbus_data.start_position(settings.stream_id, "start", from_seq, from_time);
    first_segment := postbus_data.first_segment(settings.stream_id, settings.start_after);
    insert into postbus_data.consumer as c (
        stream_id, stream_name, name, is_group, start_after, partition_base, partition_count, backoff, backoff_factor, backoff_cap, backoff_jitter,
        filter_key_pattern, filter_key_regex, filter_headers, filter_headers_not, filter_data, by_channel,
        ordering, ack_wait, max_ack_pending, max_deliver, retain_dead, max_per_key, max_waiting, on_dead, on_expired, keep_unread,
        expire_after, keep_history, dead_letters_to, ageing, fair
    )
    values (
        settings.stream_id, settings.stream_name, settings.name, settings.is_group, settings.start_after, first_segment.partition_base,
        first_segment.partition_count, settings.backoff, settings.backoff_factor, settings.backoff_cap, settings.backoff_jitter,
        settings.filter_key_pattern, settings.filter_key_regex, settings.filter_headers, settings.filter_headers_not, settings.filter_data,
        settings.by_channel,
        settings.ordering, settings.ack_wait, settings.max_ack_pending, settings.max_deliver, settings.retain_dead, settings.max_per_key,
        settings.max_waiting, settings.on_dead, settings.on_expired, settings.keep_unread, settings.expire_after, settings.keep_history,
        settings.dead_letters_to, settings.ageing, settings.fair
    )
    on conflict (stream_name, name) do nothing
    returning c.id into new_id;
    if new_id is not null then
        return;
    end if;
    select c.* into existing from postbus_data.consumer as c where c.stream_name = settings.stream_name and c.name = settings.name;
    what := format('%s "%s" of stream "%s"', case when existing.is_group then 'group' else 'consumer' end, settings.name, settings.stream_name);
    if existing.is_group <> settings.is_group then
        raise exception using errcode = 'PB409', message = format('%s already exists', what), hint = 'choose another name';
    elsif not exist_ok then
        raise exception using
            errcode = 'PB409',
            message = format('%s already exists', what),
            constraint = 'already_exists',
            hint = 'to take it as it is: exist_ok => true';
    end if;
    perform postbus_data.check_same_settings(
        what, to_jsonb(existing), to_jsonb(settings), postbus_data.consumer_defaults()
    );
end
$$;

create or replace function postbus_data.check_consumer(settings postbus_data.consumer)
returns void
language plpgsql
immutable
as $$
/* Refuse settings of a consumer that are out of their range (PB400). */
declare
    problem text;
begin
    problem := case
        when settings.ordering is null then 'ordering cannot be null'
        when settings.ordering not in ('key', 'none', 'partition')
            then format('ordering = %L is not one of key, none, partition', settings.ordering)
        when settings.ack_wait is null then 'ack_wait cannot be null'
        when settings.ack_wait not between interval '1 millisecond' and interval '7 days'
            then format('ack_wait = %s is not between 1 millisecond and 7 days', settings.ack_wait)
        when settings.max_ack_pending is null then 'max_ack_pending cannot be null'
        when settings.max_ack_pending not between 1 and 1000000
            then format('max_ack_pending = %s is not between 1 and 1000000', settings.max_ack_pending)
        when settings.max_deliver not between 1 and 1000000
            then format('max_deliver = %s is not between 1 and 1000000', settings.max_deliver)
        when settings.retain_dead not between interval '0' and interval '3650 days'
            then format('retain_dead = %s is not between 0 and 3650 days', settings.retain_dead)
        when settings.max_per_key not between 1 and 10000
            then format('max_per_key = %s is not between 1 and 10000', settings.max_per_key)
        when settings.max_waiting is null then 'max_waiting cannot be null'
        when settings.max_waiting not between 1 and 1000000
            then format('max_waiting = %s is not between 1 and 1000000', settings.max_waiting)
        when settings.on_dead is null then 'on_dead cannot be null'
        when settings.on_dead not in ('continue', 'hold')
            then format('on_dead = %L is not one of continue, hold', settings.on_dead)
        when settings.on_expired is null then 'on_expired cannot be null'
        when settings.on_expired not in ('skip', 'bury')
            then format('on_expired = %L is not one of skip, bury', settings.on_expired)
        when settings.keep_unread is null then 'keep_unread cannot be null'
        when settings.expire_after not between interval '1 minute' and interval '3650 days'
            then format('expire_after = %s is not between 1 minute and 3650 days', settings.expire_after)
        when settings.keep_history not between interval '1 second' and interval '3650 days'
            then format('keep_history = %s is not between 1 second and 3650 days', settings.keep_history)
        when settings.ageing not between interval '1 second' and interval '3650 days'
            then format('ageing = %s is not between 1 second and 3650 days', settings.ageing)
        when settings.fair is null then 'fair cannot be null'
        when settings.backoff is null or cardinality(settings.backoff) > 100 or array_position(settings.backoff, null) is not null
            then 'backoff is not a list of at most 100 delays'
        when exists (select from unnest(settings.backoff) as b where b not between interval '0' and interval '30 days')
            then 'a delay of backoff is not between 0 and 30 days'
        when settings.backoff_factor is not null and cardinality(settings.backoff) <> 1
            then 'backoff_factor needs exactly one delay in backoff, the first'
        when settings.backoff_factor not between 1 and 100
            then format('backoff_factor = %s is not between 1 and 100', settings.backoff_factor)
        when settings.backoff_cap not between interval '0' and interval '30 days'
            then format('backoff_cap = %s is not between 0 and 30 days', settings.backoff_cap)
        when (settings.backoff_jitter between 0 and 1) is not true
            then format('backoff_jitter = %s is not between 0 and 1', settings.backoff_jitter)
        when settings.dead_letters_to = settings.stream_name
            then 'dead_letters_to is the stream of the consumer itself'
        when settings.dead_letters_to is not null and not exists (
            select
            from postbus_data.stream as own
            join postbus_data.stream as other on other.data_type = own.data_type and not other.one_message_per_key
            where own.id = settings.stream_id
                and other.name = settings.dead_letters_to
        )
            then format(
                'dead_letters_to = %L is not a stream with the same data_type that keeps every message', settings.dead_letters_to
            )
    end;
    if problem is not null then
        raise exception using errcode = 'PB400', message = problem;
    end if;
end
$$;

create or replace function postbus_data.consumer_defaults()
returns jsonb
language sql
immutable
as $$
/* The settings of a consumer that was created without any. */
    select jsonb_build_object(
        'backoff', '{}'::interval[], 'backoff_factor', null, 'backoff_cap', null, 'backoff_jitter', 0,
        'filter_key_pattern', null, 'filter_headers', null, 'filter_headers_not', null, 'filter_data', null,
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
    )
$$;

create or replace function postbus_data.consumer_lock(purpose text)
returns integer
language sql
immutable parallel safe
as $$
/*
The second key of a consumer's mutexes other than those of its partitions, whose keys are the partition numbers. See
consumer_lock_class.

redeliver      held while reading the redelivery log
sweep          held while sweeping
count          held while leasing messages close to max_ack_pending
share out      held while sharing out the partitions of a group
change layout  held while waiting for all old partitions, to move to the new ones
note urgent    held while noting that no urgent messages are left
push           held while changing what is known of the consumer's endpoint
*/
    select case purpose when 'redeliver' then -1 when 'sweep' then -2 when 'count' then -3 when 'share out' then -4 when 'change layout' then -6 when 'note urgent' then -7 when 'push' then -8 end
$$;

create or replace function postbus_data.consumer_lock_class(consumer_id integer)
returns integer
language sql
immutable parallel safe
as $$
/*
The class of a consumer's mutexes, which are two-key advisory locks. The second key is a partition number, or one of those in
consumer_lock.

They lie above the classes of publishers' locks (functions/horizon/internal/publisher_lock_class.sql). Class 0 is for maintenance: its
second key is a stream's id, or the negated id for the stream's schedule.
*/
    select 1610612736 + consumer_id
$$;

create or replace function postbus_data.count_backlog(
    consumer_id integer,
    out backlog bigint,
    out is_exact boolean,
    out unread bigint,
    out in_flight bigint,
    out redelivering bigint,
    out waiting bigint,
    out dead bigint,
    out oldest_unread_at timestamptz,
    out oldest_in_flight_at timestamptz,
    out timed_out bigint,
    out by_priority jsonb
)
language plpgsql
stable
set enable_seqscan = off
set enable_bitmapscan = off
set search_path = pg_catalog, pg_temp
as $$
/*
What a consumer has not finished: backlog = unread + in_flight + waiting.

backlog              published and neither acked nor dead.
is_exact             each was counted. Otherwise unread is an estimate, of more than 1,000 messages, or of a consumer that filters by data:
                     such a filter can take any time, so it is not evaluated; or 10,000 or more are waiting.
unread               not delivered yet. Messages that the filter, their time to live or a newer version of their key rules out do not count.
in_flight            leased and not settled; redelivering is how many of them were delivered before.
waiting              failed, due for redelivery, or parked behind their key; 10,000 means that many or more.
dead                 given up; 10,000 means that many or more.
by_priority          by priority in use, how many are unread or waiting: as exact as these, each for itself.
timed_out            how many deliveries have ended because their lease expired, since the last seek.

Stable, so it has the snapshot of the query that calls it: a message that moves from one state to another meanwhile is counted once.
*/
#variable_conflict use_variable
declare
    reader postbus_data.consumer := (select c from postbus_data.consumer as c where c.id = consumer_id);
    source postbus_data.stream := (select s from postbus_data.stream as s where s.id = reader.stream_id);
    partitions integer[];
    after_seqs bigint[];
    conditions text[] := array['coalesce(l.expires_at > clock_timestamp(), true)'];
    parts integer[];
    replaced integer;
    lane integer;
    here bigint;
begin
    select array_agg(p.n order by p.n), array_agg(greatest(coalesce(place.read_to_seq, reader.start_after), source.start_seq - 1) order by p.n)
    into partitions, after_seqs
    from postbus_data.unread_partitions(reader) as p (n)
    left join lateral (
        select r.read_to_seq
        from postbus_data.position as r
        where r.consumer_id = reader.id
            and r.epoch = reader.epoch
            and r.partition = p.n
        order by r.read_to_seq desc
        limit 1
    ) as place on true;
    if reader.filter_key_regex is not null then
        conditions := conditions || 'coalesce(l.key ~ ($4).filter_key_regex, false)'::text;
    end if;
    if reader.filter_headers is not null then
        conditions := conditions || 'coalesce(l.headers @> ($4).filter_headers, false)'::text;
    end if;
    if reader.filter_headers_not is not null then
        conditions := conditions || 'not coalesce(l.headers @> any (($4).filter_headers_not), false)'::text;
    end if;
    if source.one_message_per_key then
        conditions := conditions
            || format('exists (select from postbus_data.state_%s as t where t.key = l.key and t.seq = l.seq)', source.id);
    end if;
    select c.message_count, c.is_exact and (reader.filter_data is null or c.message_count = 0), c.oldest_at
    into unread, is_exact, oldest_unread_at
    from postbus_data.count_messages(source.id, partitions, after_seqs, array_to_string(conditions, ' and '), reader) as c;

    if reader.by_channel then
        -- What the positions have passed over.
        select unread + c.lagging, is_exact and c.is_exact into unread, is_exact from postbus_data.count_lagging(reader) as c;
    end if;

    select
        coalesce(sum(s.left_count), 0), coalesce(sum(s.left_count) filter (where l.attempts is not null), 0),
        min(l.received_at) filter (where s.left_count > 0)
    into in_flight, redelivering, oldest_in_flight_at
    from postbus_data.lease as l
    cross join lateral (
        select cardinality(l.seqs) - count(*) as left_count
        from postbus_data.settled as s
        where s.token = l.token
            and s.seq = any (l.seqs)
    ) as s
    where l.consumer_id = consumer_id
        and l.epoch = reader.epoch;

    parts := array[
        (select count(*) from (select from postbus_data.waiting as w where w.consumer_id = consumer_id limit 10000) as w),
        (select count(*) from (select from postbus_data.parked as p where p.consumer_id = consumer_id and p.epoch = reader.epoch limit 10000) as p),
        (
            select count(*)
            from (
                select
                from unnest(postbus_data.lanes(reader.stream_id)) as level (lane)
                join postbus_data.due as d on d.consumer_id = consumer_id
                    and d.epoch = reader.epoch
                    and d.lane = level.lane
                    and d.n > coalesce(
                        (
                            select r.read_to_n
                            from postbus_data.redelivery_position as r
                            where r.consumer_id = consumer_id
                                and r.epoch = reader.epoch
                                and r.lane = level.lane
                            order by r.read_to_n desc
                            limit 1
                        ),
                        0
                    )
                limit 10000
            ) as d
        ) + (
            -- Of a consumer by channel: they stay until it is their channel's turn.
            select count(*)
            from (
                select
                from postbus_data.due as d
                where d.consumer_id + 0 = consumer_id
                    and d.epoch = reader.epoch
                    and d.channel is not null
                limit 10000
            ) as d
            where reader.by_channel
        )
    ];
    waiting := least(10000, parts[1] + parts[2] + parts[3]);
    is_exact := is_exact and waiting < 10000;
    if source.one_message_per_key and waiting > 0 then
        -- Those that a newer version has replaced are not delivered again. In the orders that keep no key, nobody has looked yet.
        execute format(
            'select count(*)
            from (
                (select w.key, w.seq from postbus_data.waiting as w where w.consumer_id = $1 and w.key is not null limit 10000)
                union all
                (select p.key, p.seq from postbus_data.parked as p where p.consumer_id = $1 and p.epoch = $2 limit 10000)
            ) as h
            where not exists (select from postbus_data.state_%s as t where t.key = h.key and t.seq = h.seq)',
            source.id
        )
        into replaced
        using consumer_id, reader.epoch;
        waiting := waiting - replaced;
        is_exact := is_exact and (reader.ordering = 'key' or waiting = 0);
    end if;
    select count(*) into dead
    from (select from postbus_data.dead_letter as d where d.consumer_id = consumer_id limit 10000) as d;
    timed_out := coalesce(
        (
            select s.timed_out_count
            from postbus_data.sweep_state as s
            where s.consumer_id = consumer_id
                and s.epoch = reader.epoch
            order by s.swept_to desc
            limit 1
        ),
        0
    );
    backlog := unread + in_flight + waiting;
    by_priority := jsonb_build_object('4', unread + waiting);
    if partitions[cardinality(partitions)] < 100000000 then
        return;
    end if;
    by_priority := '{}';
    foreach lane in array postbus_data.lanes(source.id) loop
        select c.message_count
        into here
        from (
            select array_agg(p.n order by p.n) as partitions, array_agg(p.after_seq order by p.n) as after_seqs
            from unnest(partitions, after_seqs) as p (n, after_seq)
            where p.n between lane and lane + 99999999
        ) as own
        cross join lateral postbus_data.count_messages(source.id, own.partitions, own.after_seqs, array_to_string(conditions, ' and '), reader) as c;
        select here + count(*)
        into here
        from (
            (
                select from postbus_data.waiting as w where w.consumer_id = consumer_id and w.partition between lane and lane + 99999999 limit 10000
            )
            union all
            (
                select
                from postbus_data.parked as p
                where p.consumer_id = consumer_id
                    and p.epoch = reader.epoch
                    and p.partition between lane and lane + 99999999
                limit 10000
            )
            union all
            (
                select from postbus_data.due as d where d.consumer_id = consumer_id and d.epoch = reader.epoch and d.lane = lane limit 10000
            )
        ) as held;
        by_priority := by_priority || jsonb_build_object(postbus.priority_of(lane), here);
    end loop;
end
$$;

create or replace function postbus_data.delivery_rate(state postbus_data.sweep_state, positions bigint, now_at timestamptz)
returns double precision
language sql
volatile
as $$
/* About how many messages per second were delivered since a sweep; 0 without a sweep. For positions see position_sum. */
    select case
        when state.swept_to > '-infinity' then greatest(
            0,
            (positions - state.position_sum) / 1024.0::double precision / greatest(0.001, extract(epoch from now_at - state.swept_to))
        )
        else 0
    end
$$;

create or replace function postbus_data.find_consumer(stream text, consumer text)
returns postbus_data.consumer
language plpgsql
stable
as $$
/* The row of a consumer. Raises PB404 when the stream or the consumer does not exist. */
declare
    found_consumer postbus_data.consumer;
begin
    -- Select the whole row: column by column would take twice as long.
    found_consumer := (
        select c
        from postbus_data.consumer as c
        where c.stream_name = find_consumer.stream
            and c.name = find_consumer.consumer
    );
    if found_consumer.id is null then
        perform postbus_data.raise_unknown_consumer(stream, consumer, false);
    end if;
    return found_consumer;
end
$$;

create or replace function postbus_data.first_segment(stream_id integer, after_seq bigint)
returns postbus_data.segment
language sql
volatile
as $$
/* The first segment that has, or may get, messages above a seq. A consumer that starts there begins with its partitions. */
    select g
    from postbus_data.segment as g
    where g.stream_id = first_segment.stream_id
        and (g.sealed_at is null or g.last_seq > first_segment.after_seq)
    order by g.number
    limit 1
$$;

create or replace function postbus_data.forget(consumer_id integer)
returns void
language sql
as $$
/* Remove what a consumer has read, holds and waits for, because it is dropped or starts again. Dead letters stay, with their saved states. */
    delete from postbus_data.settled as s
    using postbus_data.lease as l
    where l.consumer_id = forget.consumer_id
        and s.token = l.token;
    delete from postbus_data.lease as l where l.consumer_id = forget.consumer_id;
    delete from postbus_data.waiting as w where w.consumer_id = forget.consumer_id;
    delete from postbus_data.saved as s
    where s.consumer_id = forget.consumer_id
        and not exists (select from postbus_data.dead_letter as d where d.consumer_id = forget.consumer_id and d.seq = s.seq);
    delete from postbus_data.parked as p where p.consumer_id = forget.consumer_id;
    delete from postbus_data.due as d where d.consumer_id = forget.consumer_id;
    delete from postbus_data.channel_position as p where p.consumer_id = forget.consumer_id;
    delete from postbus_data.turn as t where t.consumer_id = forget.consumer_id;
    delete from postbus_data.position as p where p.consumer_id = forget.consumer_id;
    delete from postbus_data.urgent_position as p where p.consumer_id = forget.consumer_id;
    delete from postbus_data.redelivery_position as p where p.consumer_id = forget.consumer_id;
    delete from postbus_data.sweep_state as p where p.consumer_id = forget.consumer_id;
    delete from postbus_data.consumer_use as p where p.consumer_id = forget.consumer_id;
$$;

create or replace function postbus_data.held_states(consumer_id integer, epoch integer, now_at timestamptz)
returns table (partition integer, seq bigint, attempts integer, until timestamptz, reason text, state text, ack_id text, last_delivered_at timestamptz)
language sql
stable
as $$
/*
The state of each message that a consumer holds: leased, failed, parked behind its key, or due for redelivery. Postgres inlines this, so a
condition on partition and seq is an index probe in all tables but lease.
*/
    select
        l.partition, m.seq, coalesce(m.attempt, 1), l.deadline, null::text,
        case when l.deadline > now_at then 'delivered' else 'available' end,
        case when l.deadline > now_at then lpad(to_hex(l.token), 16, '0') || '-' || m.seq end,
        l.received_at
    from postbus_data.lease as l
    cross join lateral unnest(l.seqs, l.attempts) as m (seq, attempt)
    where l.consumer_id = held_states.consumer_id
        and l.epoch = held_states.epoch
        and not exists (select from postbus_data.settled as s where s.token = l.token and s.seq = m.seq)
    union all
    select
        w.partition, w.seq, w.attempts, w.due_at, w.reason, case when w.due_at > now_at then 'waiting' else 'available' end, null,
        null
    from postbus_data.waiting as w
    where w.consumer_id = held_states.consumer_id
    union all
    select p.partition, p.seq, 0, null, 'an earlier message of its key is not done', 'waiting', null, null
    from postbus_data.parked as p
    where p.consumer_id = held_states.consumer_id
        and p.epoch = held_states.epoch
    union all
    select d.partition, d.seq, d.attempts, null, null, 'available', null, null
    from postbus_data.due as d
    where d.consumer_id + 0 = held_states.consumer_id
        and d.epoch = held_states.epoch
$$;

create or replace function postbus_data.history_bounds(stream text, caller postbus.caller default postbus.current_caller())
returns table (
    consumer_id integer,
    consumer text,
    first_finished_at timestamptz,
    last_finished_at timestamptz,
    first_seq bigint
)
language sql
stable
set enable_seqscan = off
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
The first and last time in the history of each consumer of a stream, and the lowest seq in it. No row for a consumer without
history.

Raises   PB403 without the right to consume, PB404 for an unknown stream.
*/
    select c.id, c.name, h.first_finished_at, h.last_finished_at, h.first_seq
    from postbus_data.consumer as c
    cross join lateral (
        select
            (select min(h.finished_at) from postbus_data.history as h where h.consumer_id = c.id) as first_finished_at,
            (select max(h.finished_at) from postbus_data.history as h where h.consumer_id = c.id) as last_finished_at,
            (select min(h.first_seq) from postbus_data.history as h where h.consumer_id = c.id) as first_seq
    ) as h
    where c.stream_id = postbus_data.permitted_stream(caller, stream, 'consume')
        and h.first_seq is not null
    order by c.name
$$;

create or replace function postbus_data.last_use_of(reader postbus_data.consumer)
returns postbus_data.consumer_use
language sql
volatile
as $$
/* When a consumer was last used; null if unknown. */
    select u
    from postbus_data.consumer_use as u
    where u.consumer_id = reader.id
        and u.epoch = reader.epoch
    order by u.used_at desc
    limit 1
$$;

create or replace function postbus_data.note_use(reader postbus_data.consumer, positions bigint default null)
returns void
language plpgsql
volatile
as $$
/*
Record from time to time that a consumer with expire_after is in use. Two calls at once leave two rows, of which the later counts.

positions  the sum of its positions, if known.
Touches    consumer_use (insert, delete).
*/
declare
    now_at timestamptz := clock_timestamp();
    last_use postbus_data.consumer_use := postbus_data.last_use_of(reader);
begin
    if positions is null and last_use.used_at > now_at - least(interval '1 minute', reader.expire_after / 10) then
        return;
    end if;
    delete from postbus_data.consumer_use as u
    where u.consumer_id = reader.id
        and u.epoch = reader.epoch
        and u.used_at <= last_use.used_at;
    insert into postbus_data.consumer_use (consumer_id, epoch, used_at, position_sum)
    values (reader.id, reader.epoch, now_at, coalesce(positions, last_use.position_sum, 0))
    on conflict do nothing;
end
$$;

create or replace function postbus_data.peek_available(reader postbus_data.consumer, after_seq bigint, max_messages integer)
returns setof postbus.peeked
language plpgsql
volatile
as $$
/* The messages that a consumer has not been given yet: the first max_messages of each partition above a seq. */
#variable_conflict use_variable
declare
    partition integer;
    horizon bigint := postbus_data.horizon_of(reader.stream_id);
    start_seq bigint;
    read_to_seq bigint;
    messages postbus.delivery[];
    next_priority integer := postbus_data.next_priority(reader);
begin
    select s.start_seq into start_seq from postbus_data.stream as s where s.id = reader.stream_id;
    for partition in select u from postbus_data.unread_partitions(reader) as u loop
        select p.read_to_seq into read_to_seq
        from postbus_data.position as p
        where p.consumer_id = reader.id
            and p.epoch = reader.epoch
            and p.partition = partition
        order by p.read_to_seq desc
        limit 1;
        messages := postbus_data.fetch_messages(
            reader.stream_id, partition, greatest(coalesce(read_to_seq, reader.start_after), after_seq, start_seq - 1), horizon, max_messages
        );
        return query
        select m.seq, m.partition, m.key, m.data, m.bytes, m.headers, m.published_at, 'available', 0, null::timestamptz,
            case when postbus.priority_of(m.partition) < next_priority then 'messages of a higher priority go first' end,
            null::text, null::timestamptz, 0, null::text, null::bytea, postbus.priority_of(m.partition)
        from unnest(messages) as m
        where postbus_data.passes(reader, m)
            and m.seq <> all (postbus_data.superseded(reader.stream_id, messages));
    end loop;
end
$$;

create or replace function postbus_data.peek_held(
    reader postbus_data.consumer,
    after_seq bigint,
    max_messages integer,
    now_at timestamptz
)
returns setof postbus.peeked
language plpgsql
volatile
as $$
/* The messages that a consumer has leased or that wait for redelivery: the first max_messages above a seq. */
#variable_conflict use_variable
declare
    held record;
begin
    for held in
        select h.partition, array_agg(h.seq) as seqs, array_agg(h.attempts) as attempts, array_agg(h.state) as states,
            array_agg(h.until) as untils, array_agg(h.reason) as reasons, array_agg(h.ack_id) as ack_ids,
            array_agg(h.last_delivered_at) as last_delivered
        from (
            select h.*
            from postbus_data.held_states(reader.id, reader.epoch, now_at) as h
            where h.seq > after_seq
            order by h.seq
            limit max_messages
        ) as h
        group by h.partition
    loop
        return query
        select
            m.seq, m.partition, m.key, m.data, m.bytes, m.headers, m.published_at, h.state, h.attempt, h.until, h.reason,
            h.ack_id, h.last_delivered_at, coalesce(s.deferrals, 0), s.state::text, s.bytes,
            postbus.priority_of(m.partition)
        from unnest(held.seqs, held.attempts, held.states, held.untils, held.reasons, held.ack_ids, held.last_delivered)
            as h (seq, attempt, state, until, reason, ack_id, last_delivered_at)
        join unnest(
            postbus_data.fetch_named(
                reader.stream_id,
                (select s.data_type from postbus_data.stream as s where s.id = reader.stream_id),
                held.partition, held.seqs, held.attempts, 0
            )
        ) as m on m.seq = h.seq
        left join postbus_data.saved as s on s.consumer_id = reader.id and s.seq = h.seq;
    end loop;
end
$$;

create or replace function postbus_data.position_sum(reader postbus_data.consumer)
returns bigint
language sql
volatile
as $$
/*
The sum of a consumer's positions, scaled as if it had 1,024 partitions. Partitions share one range of seqs, so the sum grows by
about 1,024 for each message delivered, and by at least 1. One probe for each partition, however many dead rows there are. Null
when the stream got other partitions since the reader was looked up: its positions are all at the end.
*/
    select case
        when max(place.read_to_seq) = 9223372036854775807 then null
        else coalesce(sum(coalesce(place.read_to_seq, reader.start_after)) * 1024 / reader.partition_count, 0)::bigint
    end
    from generate_series(reader.partition_base, reader.partition_base + reader.partition_count - 1) as p (n)
    left join lateral (
        select r.read_to_seq
        from postbus_data.position as r
        where r.consumer_id = reader.id
            and r.epoch = reader.epoch
            and r.partition = p.n
        order by r.read_to_seq desc
        limit 1
    ) as place on true
$$;

create or replace function postbus_data.raise_unknown_consumer(stream text, consumer text, is_group boolean)
returns void
language plpgsql
stable
as $$
/* Raise PB404 for a consumer or group that does not exist, or for its stream. */
declare
    kind text := case when is_group then 'group' else 'consumer' end;
begin
    perform postbus_data.stream_id(stream);
    raise exception using
        errcode = 'PB404',
        message = format('%s "%s" of stream "%s" does not exist', kind, consumer, stream),
        schema = stream,
        table = consumer,
        constraint = 'unknown_' || kind,
        hint = format('create it with: select postbus.create_%s(%L, %L)', kind, stream, consumer);
end
$$;

create or replace function postbus_data.set_filter(
    settings postbus_data.consumer,
    key_pattern text,
    headers jsonb,
    headers_not jsonb,
    data_path text
)
returns postbus_data.consumer
language plpgsql
stable
as $$
/* Check the given parts of a filter and put them into a consumer's settings; null leaves a part unchanged. Raises PB400. */
declare
    data_type text;
begin
    if key_pattern is not null then
        settings.filter_key_regex := postbus_data.pattern_regex(key_pattern);
        settings.filter_key_pattern := key_pattern;
    end if;
    if jsonb_typeof(coalesce(headers, '{}')) <> 'object' or coalesce(headers, '{}') @? 'strict $.* ? (@.type() != "string")' then
        raise exception using errcode = 'PB400', message = 'filter_headers is not a JSON object whose values are strings';
    end if;
    if jsonb_typeof(coalesce(headers_not, '{}')) <> 'object' or coalesce(headers_not, '{}') @? 'strict $.* ? (@.type() != "string")' then
        raise exception using errcode = 'PB400', message = 'filter_headers_not is not a JSON object whose values are strings';
    end if;
    settings.filter_headers := coalesce(headers, settings.filter_headers);
    if headers_not is not null then
        settings.filter_headers_not := array(
            select jsonb_build_object(h.key, h.value) from jsonb_each(headers_not) as h
        );
    end if;
    if data_path is not null then
        select s.data_type into data_type from postbus_data.stream as s where s.id = settings.stream_id;
        if data_type <> 'json' then
            raise exception using errcode = 'PB400', message = format('filter_data needs a json stream, and this one holds %s', data_type);
        end if;
        begin
            settings.filter_data := data_path::jsonpath;
        exception when others then
            raise exception using errcode = 'PB400', message = format('filter_data is not a JSON path: %s', sqlerrm);
        end;
    end if;
    return settings;
end
$$;

create or replace function postbus_data.start_position(stream_id integer, "start" text, from_seq bigint, from_time timestamptz)
returns bigint
language plpgsql
volatile
as $$
/*
The seq after which to read, for a consumer that starts or seeks at
    earliest  the oldest message that is kept
    latest    what is published from now on
    a seq     that message
    a time    what was published at that time or later, see seq_before_time

Raises   PB400 unless exactly one of them is given.
*/
begin
    if num_nonnulls("start", from_seq, from_time) <> 1 or "start" not in ('earliest', 'latest') then
        raise exception using
            errcode = 'PB400',
            message = 'exactly one position is needed: "earliest", "latest", a seq or a time',
            constraint = 'which_position',
            hint = 'give exactly one of: start => ''earliest'' or ''latest'', from_seq, from_time';
    end if;
    return case
        when from_seq is not null then greatest(from_seq - 1, 0)
        when from_time is not null then postbus_data.seq_before_time(stream_id, from_time)
        when "start" = 'latest' then postbus_data.horizon_of(stream_id)
        else 0
    end;
end
$$;

create or replace function postbus_data.unread_partitions(reader postbus_data.consumer)
returns setof integer
language sql
volatile
as $$
/* The partitions in which a consumer may have something left to read: those that it reads, and those of newer layouts. */
    select p.n
    from (
        select distinct g.partition_base, g.partition_count
        from postbus_data.segment as g
        where g.stream_id = reader.stream_id
            and g.partition_base >= reader.partition_base
    ) as g
    cross join lateral postbus_data.segment_partitions(reader.stream_id, g.partition_base, g.partition_count) as p (n)
    order by p.n
$$;

create or replace function postbus.list_consumers(stream text, caller postbus.caller default postbus.current_caller())
returns setof postbus.consumer_info
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
The consumers of a stream and their settings, in order of their names.

Raises   PB403 without the right to consume, PB404 for an unknown stream.
*/
declare
    listed integer := postbus_data.permitted_stream(caller, stream, 'consume');
begin
    return query
    select
        c.stream_name, c.name, c.id, c.is_group, c.paused, c.created_at, c.backoff, c.backoff_factor, c.backoff_cap, c.backoff_jitter,
        c.filter_key_pattern, c.filter_headers,
        (select jsonb_object_agg(h.key, h.value) from unnest(c.filter_headers_not) as p cross join lateral jsonb_each(p) as h),
        c.filter_data::text,
        c.ordering, c.ack_wait, c.max_ack_pending, c.max_deliver, c.retain_dead, c.max_per_key, c.max_waiting, c.on_dead, c.on_expired,
        c.keep_unread, c.expire_after, c.keep_history, c.dead_letters_to, c.ageing, c.fair
    from postbus_data.consumer as c
    where c.stream_id = listed
    order by c.name;
end
$$;

create or replace function postbus.pause(stream text, consumer text)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Stop delivering messages to a consumer until it is resumed. Messages in flight can still be acked.

Raises   PB404 for an unknown stream or consumer.
Touches  consumer (update).
*/
declare
    paused_id integer := (postbus_data.find_consumer(stream, consumer)).id;
begin
    update postbus_data.consumer as c set paused = true where c.id = paused_id;
end
$$;

create or replace function postbus.peek(
    stream text,
    consumer text,
    state text default null,
    key_pattern text default null,
    after_seq bigint default 0,
    max_messages integer default 100,
    caller postbus.caller default postbus.current_caller()
)
returns setof postbus.peeked
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Messages as a consumer sees them, in order of seq, above after_seq. Changes nothing.

state    available (can be received), delivered (leased and not settled), waiting (for redelivery) or dead; null for all.

A lease that has expired is shown as available. The reason of an available message says whether it waits for those of a higher priority, or for its channel's turn or limits. With a key pattern, a page may hold fewer messages than there are: continue from
its last seq, or from after_seq + 10,000 when it was empty.

Raises   PB400 for an argument out of range or an invalid pattern, PB403 without the right to consume, PB404 for an unknown
         stream or consumer, PB412 outside READ COMMITTED, PB503 on a standby.
*/
#variable_conflict use_variable
declare
    reader postbus_data.consumer := postbus_data.permitted_consumer(caller, stream, consumer);
    regex text := postbus_data.pattern_regex(key_pattern);
    now_at timestamptz := clock_timestamp();
begin
    if state not in ('available', 'delivered', 'waiting', 'dead') then
        raise exception using
            errcode = 'PB400',
            message = format('state "%s" is not one of available, delivered, waiting, dead', state);
    end if;
    if max_messages is null or max_messages not between 1 and 10000 then
        raise exception using
            errcode = 'PB400',
            message = format('max_messages = %s is not between 1 and 10000', coalesce(max_messages::text, 'null'));
    end if;
    return query
    select p.*
    from (
        select h.*
        from postbus_data.peek_held(reader, after_seq, max_messages, now_at) as h
        union all
        select a.*
        from postbus_data.peek_available(reader, after_seq, max_messages) as a
        where state is null or state = 'available'
        union all
        select l.*
        from postbus_data.peek_lagging(reader, after_seq, max_messages) as l
        where reader.by_channel
            and (state is null or state = 'available')
        union all
        select
            d.seq, d.partition, d.key, d.data, d.bytes, d.headers, d.published_at, 'dead', d.attempts, null::timestamptz, d.reason,
            null::text, null::timestamptz, coalesce(s.deferrals, 0), s.state::text, s.bytes, postbus.priority_of(d.partition)
        from postbus_data.dead_letter as d
        left join postbus_data.saved as s on s.consumer_id = reader.id and s.seq = d.seq
        where d.consumer_id = reader.id
            and d.seq > after_seq
            and (state is null or state = 'dead')
    ) as p
    where (state is null or p.state = state)
        and (regex is null or p.key ~ regex)
    order by p.seq
    limit max_messages;
end
$$;

create or replace function postbus.peek_at(
    stream text,
    consumer text,
    seq bigint,
    caller postbus.caller default postbus.current_caller()
)
returns setof postbus.peeked
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
The message with this seq as a consumer sees it: see peek. No row if the consumer has finished it or skipped it, or if the stream has no
such message. Changes nothing.

Its cost does not depend on the depth of the stream or the backlog of the consumer: it takes one index probe for each partition and each
table, and looks through the leases in flight of the message's partition.

Raises   PB400 for a seq below 1, PB403 without the right to consume, PB404 for an unknown stream or consumer.
*/
#variable_conflict use_variable
declare
    asked postbus_data.consumer := postbus_data.permitted_consumer(caller, stream, consumer);
    message postbus.delivery := postbus_data.find_message(asked.stream_id, seq);
    is_wanted boolean := postbus_data.passes(asked, message) and postbus_data.superseded(asked.stream_id, array[message]) = '{}';
    -- A call within the query would keep Postgres from inlining held_states.
    now_at timestamptz := clock_timestamp();
    next_priority integer := postbus_data.next_priority(asked);
    -- Of its channel, if the message was passed over.
    turn postbus_data.turn;
begin
    if seq is null or seq < 1 then
        raise exception using errcode = 'PB400', message = format('seq = %s is not at least 1', coalesce(seq::text, 'null'));
    end if;
    if asked.by_channel then
        select t.*
        into turn
        from postbus_data.stream as s
        join postbus_data.turn as t on t.consumer_id = asked.id
            and t.epoch = asked.epoch
            and t.partition = message.partition
            and t.channel = postbus_data.channel_of(message.key, s.channel_tokens)
            and t.after_seq < seq
        where s.id = asked.stream_id;
    end if;
    -- One statement, so one snapshot: a message that moves from one table to another meanwhile is seen in exactly one.
    return query
    select
        d.seq, d.partition, d.key, d.data, d.bytes, d.headers, d.published_at, 'dead', d.attempts, null::timestamptz, d.reason,
        null::text, null::timestamptz, coalesce(s.deferrals, 0), s.state::text, s.bytes, postbus.priority_of(d.partition)
    from postbus_data.dead_letter as d
    left join postbus_data.saved as s on s.consumer_id = asked.id and s.seq = d.seq
    where d.consumer_id = asked.id
        and d.seq = seq
    union all
    select
        message.seq, message.partition, message.key, message.data, message.bytes, message.headers, message.published_at, h.state, h.attempts,
        h.until, h.reason, h.ack_id, h.last_delivered_at, coalesce(s.deferrals, 0), s.state::text, s.bytes, postbus.priority_of(message.partition)
    from postbus_data.held_states(asked.id, asked.epoch, now_at) as h
    left join postbus_data.saved as s on s.consumer_id = asked.id and s.seq = h.seq
    where h.partition = message.partition
        and h.seq = seq
    union all
    select
        message.seq, message.partition, message.key, message.data, message.bytes, message.headers, message.published_at, 'available', 0,
        null, coalesce(
            case when turn.n is not null then postbus_data.turn_reason(turn, now_at) end,
            case when postbus.priority_of(message.partition) < next_priority then 'messages of a higher priority go first' end
        ), null, null, 0, null, null,
        postbus.priority_of(message.partition)
    from postbus_data.stream as s
    where s.id = asked.stream_id
        and seq >= s.start_seq
        and is_wanted
        and mod(message.partition, 100000000) >= asked.partition_base
        and (turn.n is not null or seq > coalesce(
            (
                select p.read_to_seq
                from postbus_data.position as p
                where p.consumer_id = asked.id
                    and p.epoch = asked.epoch
                    and p.partition = message.partition
                order by p.read_to_seq desc
                limit 1
            ),
            asked.start_after
        ));
end
$$;

create or replace function postbus.replay(
    stream text,
    consumer text,
    from_seq bigint default null,
    to_seq bigint default null,
    from_time timestamptz default null,
    to_time timestamptz default null,
    key_pattern text default null,
    max_messages integer default 1000,
    resume text default null
)
returns table (replayed integer, next_resume text)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Deliver messages again that a consumer has already received, while it continues with new ones: the messages of a range of seqs or
times whose key matches.

Their attempts are counted from 1 again. Messages that are in flight, waiting or not delivered yet are left alone, and so are
dead letters, which are redriven instead. In order "key", a replayed message comes before later messages of its key that are
still to come.

It takes one page at a time: call it again with next_resume until that is null.

Returns  how many messages of the page are delivered again, and where to continue.
Raises   PB400 for an argument out of range, PB404 for an unknown stream or consumer, PB412 outside READ COMMITTED, PB503 on a
         standby.
Touches  waiting (insert).
*/
#variable_conflict use_column
declare
    reader postbus_data.consumer := postbus_data.find_consumer(stream, consumer);
begin
    with page as materialized (
        select m.seq, m.partition, m.key, m.resume
        from postbus.read(
            stream, from_seq => replay.from_seq, to_seq => replay.to_seq, from_time => replay.from_time, to_time => replay.to_time,
            key_pattern => replay.key_pattern, max_messages => replay.max_messages, resume => replay.resume
        ) as m
    ),
    again as (
        insert into postbus_data.waiting (consumer_id, partition, seq, key, attempts, due_at, reason)
        select reader.id, p.partition, p.seq, p.key, 0, clock_timestamp(), 'replayed'
        from page as p
        where p.seq <= (
                select h.read_to_seq
                from postbus_data.position as h
                where h.consumer_id = reader.id
                    and h.epoch = reader.epoch
                    and h.partition = p.partition
                order by h.read_to_seq desc
                limit 1
            )
            and not exists (
                select
                from postbus_data.lease as l
                where l.consumer_id = reader.id
                    and l.epoch = reader.epoch
                    and p.seq = any (l.seqs)
                    and not exists (select from postbus_data.settled as s where s.token = l.token and s.seq = p.seq)
            )
            and not exists (
                select from postbus_data.due as d where d.consumer_id = reader.id and d.epoch = reader.epoch and d.seq = p.seq
            )
            and not exists (
                select
                from postbus_data.parked as k
                where k.consumer_id = reader.id
                    and k.epoch = reader.epoch
                    and k.partition = p.partition
                    and k.seq = p.seq
            )
            and not exists (select from postbus_data.dead_letter as d where d.consumer_id = reader.id and d.seq = p.seq)
            -- Passed over, to be delivered when it is its channel's turn.
            and not (
                reader.by_channel
                and exists (
                    select
                    from postbus_data.stream as s
                    join postbus_data.turn as t on t.consumer_id = reader.id
                        and t.epoch = reader.epoch
                        and t.partition = p.partition
                        and t.channel = postbus_data.channel_of(p.key, s.channel_tokens)
                        and t.after_seq < p.seq
                    where s.id = reader.stream_id
                )
            )
        on conflict on constraint waiting_pkey do nothing
        returning seq
    )
    select (select count(*) from again)::integer, (select p.resume from page as p where p.resume is not null limit 1)
    into replayed, next_resume;
    return next;
end
$$;

create or replace function postbus.resume(stream text, consumer text)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Deliver messages to a paused consumer again.

Raises   PB404 for an unknown stream or consumer.
Touches  consumer (update).
*/
declare
    resumed_id integer := (postbus_data.find_consumer(stream, consumer)).id;
begin
    update postbus_data.consumer as c set paused = false where c.id = resumed_id;
end
$$;

create or replace function postbus.seek(
    stream text,
    consumer text,
    "start" text default null,
    from_seq bigint default null,
    from_time timestamptz default null
)
returns bigint
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Move a consumer to another position: start => 'earliest' or 'latest', from_seq, or from_time.

Everything in flight or waiting for redelivery is given up, and its acks are refused. Dead letters stay. Seeking begins a new
epoch: a receive running at the same moment may still return messages of the old one, whose acks are refused too.

Returns  the seq after which the consumer reads on.
Raises   PB400 unless exactly one position is given, PB404 for an unknown stream or consumer, PB412 outside READ COMMITTED,
         PB503 on a standby.
Touches  consumer (update); position, lease, settled, waiting, parked, due, saved and the consumer's other state (delete).
*/
declare
    sought postbus_data.consumer := postbus_data.find_consumer(stream, consumer);
    new_start bigint := postbus_data.start_position(sought.stream_id, "start", from_seq, from_time);
    first_segment postbus_data.segment := postbus_data.first_segment(sought.stream_id, new_start);
begin
    update postbus_data.consumer as c
    set epoch = c.epoch + 1,
        start_after = new_start,
        partition_base = first_segment.partition_base,
        partition_count = first_segment.partition_count
    where c.id = sought.id;
    perform postbus_data.forget(sought.id);
    return new_start;
end
$$;

create or replace function postbus.stats(stream text, consumer text, caller postbus.caller default postbus.current_caller())
returns table (
    partition integer,
    backlog bigint,
    backlog_is_exact boolean,
    position_seq bigint,
    horizon_seq bigint,
    lag_estimate bigint,
    oldest_unread_at timestamptz,
    in_flight bigint,
    waiting bigint,
    dead bigint,
    oldest_in_flight_at timestamptz,
    expired bigint,
    missed_estimate bigint,
    rate_estimate double precision,
    by_priority jsonb
)
language plpgsql
volatile
security definer
set enable_seqscan = off
set enable_bitmapscan = off
set search_path = pg_catalog, pg_temp
as $$
/*
How far a consumer has come: one row for each partition that it reads, and one with partition null for the whole consumer. The
cost does not depend on the length of the stream.

backlog              how many messages the consumer has not finished: not delivered yet, in flight, waiting for redelivery, or parked behind
                     their key. Dead letters and scheduled messages do not count. Null for a partition.
backlog_is_exact     they were counted. Otherwise it is an estimate: above 1,000 messages that are not delivered yet, and for a filter by
                     data. 0 is always exact.
position_seq         the partition was delivered up to this seq.
lag_estimate         about how many messages are not delivered yet; for the whole consumer, as exact as the backlog. For a partition it
                     assumes that messages are spread evenly over the partitions, and passes over the filter.
oldest_unread_at     when the oldest message that is not delivered yet was published.
in_flight            how many messages are leased and not settled.
waiting, dead        how many messages have failed or are parked, and how many were given up; 10,000 means that many or more.
oldest_in_flight_at  when the oldest lease was given.
expired              how many messages were skipped or buried because their time to live was over, since the last seek.
by_priority          how many messages are not delivered yet or waiting, by each priority in use, as exact as these. Null for a partition.
rate_estimate        about how many messages per second were delivered in the last seconds; null for a group.
missed_estimate      about how many messages retention or a purge removed before the consumer reached them. Seqs without a
                     message do not count; postbus_data.missed_between says what is exact and what is estimated.

Raises   PB403 without the right to consume, PB404 for an unknown stream or consumer, PB412 outside READ COMMITTED, PB503 on a
         standby.
*/
#variable_conflict use_column
declare
    reader postbus_data.consumer := postbus_data.permitted_consumer(caller, stream, consumer);
    layout bigint := postbus_data.reading_layout(reader);
    partition_count integer := postbus_data.layout_count(layout);
    end_seq bigint;
    total_expired bigint := 0;
    total_missed bigint := 0;
    start_seq bigint;
    next_message postbus.delivery;
    swept postbus_data.sweep_state;
begin
    horizon_seq := postbus_data.horizon_of(reader.stream_id);
    select s.start_seq into start_seq from postbus_data.stream as s where s.id = reader.stream_id;
    -- The first seq of the next layout, after a change of the partition count.
    end_seq := least(
        horizon_seq,
        (
            select min(g.after_seq)
            from postbus_data.segment as g
            where g.stream_id = reader.stream_id
                and g.partition_base > reader.partition_base
                and g.number <= postbus_data.layout_segment(layout)
        )
    );
    for partition in select p from postbus_data.segment_partitions(reader.stream_id, postbus_data.layout_base(layout), partition_count) as p order by p loop
        position_seq := null;
        select p.read_to_seq, p.expired_count, p.missed_count into position_seq, expired, missed_estimate
        from postbus_data.position as p
        where p.consumer_id = reader.id
            and p.epoch = reader.epoch
            and p.partition = stats.partition
        order by p.read_to_seq desc
        limit 1;
        position_seq := coalesce(position_seq, reader.start_after);
        missed_estimate := coalesce(missed_estimate, 0) + case
            when start_seq - 1 > position_seq
            then postbus_data.missed_between(reader.stream_id, partition, position_seq, start_seq, partition_count)
            else 0
        end;
        total_missed := total_missed + missed_estimate;
        position_seq := greatest(position_seq, start_seq - 1);
        next_message := (
            postbus_data.fetch_messages(reader.stream_id, partition, position_seq, horizon_seq, 1)
        )[1];
        oldest_unread_at := next_message.published_at;
        lag_estimate := case
            when next_message.seq is null then 0
            else greatest(1, (end_seq - next_message.seq + 1) / partition_count)
        end;
        in_flight := postbus_data.in_flight(reader.id, reader.epoch, partition, null);
        expired := coalesce(expired, 0);
        total_expired := total_expired + expired;
        return next;
    end loop;

    partition := null;
    position_seq := null;
    expired := total_expired;
    missed_estimate := total_missed;
    select b.backlog, b.is_exact, b.unread, b.in_flight, b.waiting, b.dead, b.oldest_unread_at, b.oldest_in_flight_at, b.by_priority
    into backlog, backlog_is_exact, lag_estimate, in_flight, waiting, dead, oldest_unread_at, oldest_in_flight_at, by_priority
    from postbus_data.count_backlog(reader.id) as b;
    if not reader.is_group then
        swept := postbus_data.sweep_state_of(reader);
        -- Just after a sweep there is too little time to divide by; the sweep has recorded the rate before it.
        rate_estimate := case
            when swept.swept_to > clock_timestamp() - interval '1 second' then swept.delivery_rate
            else postbus_data.delivery_rate(swept, postbus_data.position_sum(reader), clock_timestamp())
        end;
    end if;
    return next;
end
$$;

create or replace function postbus.dead_letters(
    stream text,
    consumer text,
    seqs bigint[] default null,
    key_pattern text default null,
    reason_like text default null,
    after_seq bigint default 0,
    max_messages integer default 100,
    caller postbus.caller default postbus.current_caller()
)
returns setof postbus.dead_letter
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
A page of a consumer's dead letters, in order of seq, above after_seq.

seqs, key_pattern, reason_like   only these; reason_like is a LIKE pattern, such as 'timeout%'. Null matches all.

Raises   PB400 for an argument out of range or an invalid pattern, PB403 without the right to consume, PB404 for an unknown
         stream or consumer.
*/
declare
    reader postbus_data.consumer := postbus_data.permitted_consumer(caller, stream, consumer);
begin
    return query
    select d.seq, d.partition, d.key, d.data, d.bytes, d.headers, d.published_at, d.attempts, d.reason, d.died_at,
        coalesce(s.deferrals, 0), s.state::text, s.bytes, postbus.priority_of(d.partition)
    from postbus_data.match_dead(reader.id, seqs, key_pattern, reason_like, after_seq, max_messages) as d
    left join postbus_data.saved as s on s.consumer_id = reader.id and s.seq = d.seq
    order by d.seq;
end
$$;

create or replace function postbus.discard(
    stream text,
    consumer text,
    seqs bigint[] default null,
    key_pattern text default null,
    reason_like text default null,
    max_messages integer default 10000,
    caller postbus.caller default postbus.current_caller()
)
returns integer
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Remove at most max_messages dead letters. See dead_letters for how to choose them.

Returns  how many were removed.
Raises   PB400 for an argument out of range or an invalid pattern, PB403 without the right to consume, PB404 for an unknown
         stream or consumer.
Touches  dead_letter, saved (delete).
*/
declare
    reader postbus_data.consumer := postbus_data.permitted_consumer(caller, stream, consumer);
    discarded integer;
begin
    with gone as (
        delete from postbus_data.dead_letter as d
        using postbus_data.match_dead(reader.id, seqs, key_pattern, reason_like, 0, max_messages) as m
        where d.consumer_id = reader.id
            and d.seq = m.seq
        returning d.seq
    ),
    forgotten as (
        delete from postbus_data.saved as s
        where s.consumer_id = reader.id
            and s.seq in (select g.seq from gone as g)
    )
    select count(*) into discarded from gone as g;
    return discarded;
end
$$;

create or replace function postbus_data.find_missing(stream_id integer, partitions integer[], seqs bigint[])
returns bigint[]
language plpgsql
volatile
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
/*
Which of these messages are neither in the log nor kept, given the partition and the seq of each.

Looks at their keys only, so it does not matter how large they are.

Locks    the segments that may have them, against being dropped until the transaction ends.
*/
declare
    conditions text;
    missing bigint[];
begin
    select string_agg(
        format(
            ' and not exists (select from postbus_data.log_%s_%s as l where l.partition = m.partition and l.seq = m.seq)', g.stream_id, g.number
        ),
        ''
    )
    into conditions
    from postbus_data.segment as g
    where g.stream_id = find_missing.stream_id
        and (g.sealed_at is null or g.last_seq >= (select min(s) from unnest(seqs) as s))
        and g.after_seq < (select max(s) from unnest(seqs) as s);
    execute format(
        'select array_agg(m.seq)
        from unnest($1, $2) as m (partition, seq)
        where not exists (select from postbus_data.kept as k where k.stream_id = $3 and k.partition = m.partition and k.seq = m.seq)%s',
        conditions
    )
    into missing
    using partitions, seqs, stream_id;
    return missing;
end
$$;

create or replace function postbus_data.match_dead(
    consumer_id integer,
    seqs bigint[],
    key_pattern text,
    reason_like text,
    after_seq bigint,
    max_messages integer
)
returns setof postbus_data.dead_letter
language plpgsql
stable
as $$
/* A consumer's dead letters above a seq, in order, that match the seqs, the key pattern and the reason; null matches all. */
declare
    regex text := postbus_data.pattern_regex(key_pattern);
begin
    if max_messages is null or max_messages not between 1 and 10000 then
        raise exception using
            errcode = 'PB400',
            message = format('max_messages = %s is not between 1 and 10000', coalesce(max_messages::text, 'null'));
    end if;
    return query
    select d.*
    from postbus_data.dead_letter as d
    where d.consumer_id = match_dead.consumer_id
        and d.seq > after_seq
        and (seqs is null or d.seq = any (seqs))
        and (regex is null or d.key ~ regex)
        and (reason_like is null or d.reason like reason_like)
    order by d.seq
    limit max_messages;
end
$$;

create or replace function postbus.redrive(
    stream text,
    consumer text,
    seqs bigint[] default null,
    key_pattern text default null,
    reason_like text default null,
    max_messages integer default 1000,
    to_stream text default null,
    caller postbus.caller default postbus.current_caller()
)
returns integer
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Give dead letters another chance, oldest first, at most max_messages of them: deliver them to their consumer again with attempts
counted from 1 and with the state that was saved, or publish them to a stream. See dead_letters for how to choose them.

They keep their priority. To limit the rate, call it for a few messages at a time.

Returns  how many were moved. A dead letter whose message was purged cannot go back to the consumer and stays; it can go to a
         stream.
Raises   PB400 for an argument out of range or an invalid pattern, PB403 without the right to consume (or to publish to
         to_stream), PB404 for an unknown stream, consumer or to_stream, PB409 when to_stream holds another data type; as
         publish, for to_stream.
Touches  dead_letter (delete), saved (delete) with to_stream, waiting and kept, or the log of to_stream (insert).
Locks    the dead letters it moves; those that another transaction has locked are passed over. With to_stream, as publish.
*/
declare
    reader postbus_data.consumer := postbus_data.permitted_consumer(caller, stream, consumer);
    source postbus_data.stream;
    letter postbus_data.dead_letter;
    partitions integer[];
    moved_seqs bigint[];
    missing bigint[];
begin
    select s.* into source from postbus_data.stream as s where s.id = reader.stream_id;
    -- Only their seqs: all together may be larger than what fits into memory.
    select array_agg(l.seq), array_agg(l.partition)
    into moved_seqs, partitions
    from (
        select d.seq, d.partition
        from postbus_data.match_dead(
            reader.id, seqs, key_pattern, reason_like,
            -- Skip the ones that cannot go back, so that they do not fill the page.
            case when to_stream is null then source.purged_seq - 1 else 0 end,
            max_messages
        ) as m
        join postbus_data.dead_letter as d on d.consumer_id = reader.id and d.seq = m.seq
        order by d.seq
        for update of d skip locked
    ) as l;
    if moved_seqs is null then
        return 0;
    end if;
    if to_stream is not null then
        for letter in
            select d.* from postbus_data.dead_letter as d where d.consumer_id = reader.id and d.seq = any (moved_seqs) order by d.seq
        loop
            perform postbus.publish(to_stream, letter.key, letter.data, letter.headers, letter.bytes, source.data_type, priority => postbus.priority_of(letter.partition), caller => caller);
        end loop;
        delete from postbus_data.saved as s where s.consumer_id = reader.id and s.seq = any (moved_seqs);
    else
        -- Their segments may be gone; the letters' copies are not.
        missing := postbus_data.find_missing(source.id, partitions, moved_seqs);
        insert into postbus_data.kept (stream_id, partition, seq, published_at, key, data, bytes, headers)
        select source.id, d.partition, d.seq, d.published_at, d.key, d.data, d.bytes, d.headers
        from postbus_data.dead_letter as d
        where d.consumer_id = reader.id
            and d.seq = any (missing);
        insert into postbus_data.waiting (consumer_id, partition, seq, key, attempts, due_at, reason)
        select reader.id, d.partition, d.seq, d.key, 0, clock_timestamp(), d.reason
        from postbus_data.dead_letter as d
        where d.consumer_id = reader.id
            and d.seq = any (moved_seqs)
        order by d.seq;
    end if;
    delete from postbus_data.dead_letter as d where d.consumer_id = reader.id and d.seq = any (moved_seqs);
    return cardinality(moved_seqs);
end
$$;

create or replace function postbus_data.begin_dedup(stream_id integer)
returns void
language plpgsql
as $$
/* Make a stream remember message ids, unless it does already: create its register and the first table. */
begin
    if to_regclass('postbus_data.dedup_' || stream_id) is null then
        perform postbus_data.prepare_dedup(stream_id, 1);
        execute format('create sequence postbus_data.dedup_%s cache 1', stream_id);
        perform postbus_data.apply_grants(stream_id);
        perform postbus_data.set_dedup(stream_id, 1);
    end if;
end
$$;

create or replace function postbus_data.deduplicate(stream_id integer, ids text[], seqs bigint[])
returns bigint[]
language plpgsql
volatile
as $$
/*
Find the messages of a batch that were published before, by their ids; a null id is always new. This transaction takes the other
ids: another transaction that wants one of them waits for this one to end. If a batch has an id twice, the first counts.

seqs     the seq that each message would get.
Returns  for each message null when it is new, otherwise the seq of the message published before.
Raises   PB409 when the stream has no dedup_window, PB400 for an id that is empty or longer than 255 characters.
Touches  the stream's tables of ids (insert).
Locks    ids in their order, so that two batches do not deadlock.

Its caller has called begin_publish, so the register is read after the horizon lock is taken: see maintain_dedup.
*/
declare
    now_at timestamptz := clock_timestamp();
    oldest timestamptz := now_at - (select s.dedup_window from postbus_data.stream as s where s.id = stream_id);
    register regclass := to_regclass('postbus_data.dedup_' || stream_id);
    current_number integer := pg_sequence_last_value(register);
    last_table postbus_data.dedup;
    known jsonb;
    found_known jsonb;
    wanted text[];
begin
    if register is null or oldest is null then
        raise exception using
            errcode = 'PB409',
            message = 'the stream has no dedup_window',
            constraint = 'no_dedup_window',
            hint = 'set one with alter_stream, or publish without ids';
    end if;
    if exists (select from unnest(ids) as i (id) where length(i.id) not between 1 and 255) then
        raise exception using errcode = 'PB400', message = 'a dedup id is not 1 to 255 characters long';
    end if;

    if to_regclass(format('postbus_data.dedup_%s_%s', stream_id, current_number)) is null then
        -- A register from a dump may be ahead until maintenance repairs it. Until then, ids go to the table that it will be set
        -- to.
        current_number := (select max(d.number) from postbus_data.dedup as d where d.stream_id = deduplicate.stream_id);
    end if;

    select d.* into last_table
    from postbus_data.dedup as d
    where d.stream_id = deduplicate.stream_id
        and d.number = current_number - 1;
    known := '{}';
    if last_table.number is not null then
        if last_table.sealed_at is null or current_setting('transaction_isolation') <> 'read committed' then
            -- Another transaction may be inserting the same id right now.
            known := postbus_data.insert_ids(format('postbus_data.dedup_%s_%s', stream_id, last_table.number), ids, seqs, now_at, oldest);
        else
            execute format(
                'select coalesce(jsonb_object_agg(d.id, d.seq), ''{}'')
                from postbus_data.dedup_%s_%s as d
                where d.id = any ($1) and d.published_at >= $2',
                stream_id, last_table.number
            ) into known using ids, oldest;
        end if;
    end if;
    select array_agg(case when not known ? i.id then i.id end order by i.place) into wanted
    from unnest(ids) with ordinality as i (id, place);
    found_known := postbus_data.insert_ids(format('postbus_data.dedup_%s_%s', stream_id, current_number), wanted, seqs, now_at, oldest);
    known := known || found_known;

    return array(
        select case
            when i.id is null then null
            when known ? i.id then (known ->> i.id)::bigint
            when row_number() over (partition by i.id order by i.place) > 1 then first_value(i.seq) over (partition by i.id order by i.place)
        end
        from unnest(ids, seqs) with ordinality as i (id, seq, place)
        order by i.place
    );
end
$$;

create or replace function postbus_data.end_dedup(stream_id integer)
returns void
language plpgsql
as $$
/* Make a stream forget all message ids. */
declare
    old_number integer;
begin
    execute format('drop sequence if exists postbus_data.dedup_%s', stream_id);
    for old_number in
        delete from postbus_data.dedup as d where d.stream_id = end_dedup.stream_id returning d.number
    loop
        execute format('drop table postbus_data.dedup_%s_%s', stream_id, old_number);
    end loop;
end
$$;

create or replace function postbus_data.insert_ids(ids_table text, ids text[], seqs bigint[], now_at timestamptz, oldest timestamptz)
returns jsonb
language plpgsql
volatile
as $$
/*
Insert ids into a table of ids. An existing id that is older than oldest is overwritten.

Returns  the ids that existed, with their seqs.
*/
declare
    taken text[];
    known jsonb;
begin
    execute format(
        'with taken as (
            insert into %1$s as d (id, seq, published_at)
            select i.id, i.seq, $3
            from (
                select distinct on (u.id) u.id, u.seq
                from unnest($1, $2) with ordinality as u (id, seq, place)
                where u.id is not null
                order by u.id, u.place
            ) as i
            order by i.id
            on conflict (id) do update
            set seq = excluded.seq,
                published_at = excluded.published_at
            where d.published_at < $4
            returning d.id
        )
        select array_agg(t.id) from taken as t',
        ids_table
    ) into taken using ids, seqs, now_at, oldest;
    -- A later statement sees rows of the transaction it has waited for.
    execute format(
        'select coalesce(jsonb_object_agg(d.id, d.seq), ''{}'') from %1$s as d where d.id = any ($1) and not d.id = any ($2)',
        ids_table
    ) into known using ids, coalesce(taken, '{}');
    return known;
end
$$;

create or replace function postbus_data.maintain_dedup(stream_id integer, sequence regclass)
returns integer
language plpgsql
volatile
as $$
/*
Begin the next table of ids when the current one is as old as the window, and drop tables that hold no id within it.

As with segments, one call prepares a table and a later one points the register at it. The old table is sealed when no publisher
is left that may have read the register before. Until then publishers write their ids to both.

Its caller holds the stream's maintenance mutex.
Returns  how many steps were taken.
*/
declare
    register regclass := to_regclass('postbus_data.dedup_' || stream_id);
    time_window interval := (select s.dedup_window from postbus_data.stream as s where s.id = stream_id);
    current_number integer;
    next_table postbus_data.dedup;
    oldest bigint;
    step_count integer;
    changed integer;
    old_number integer;
begin
    if register is null then
        return 0;
    end if;
    step_count := postbus_data.repair_dedup(stream_id);
    -- The clock may have been set back; a table must not stay until that time comes again.
    update postbus_data.dedup as d
    set begun_at = case when d.begun_at is not null then least(d.begun_at, clock_timestamp()) end,
        sealed_at = case when d.sealed_at is not null then least(d.sealed_at, clock_timestamp()) end
    where d.stream_id = maintain_dedup.stream_id
        and greatest(d.begun_at, d.sealed_at) > clock_timestamp();
    current_number := pg_sequence_last_value(register);
    update postbus_data.dedup as d
    set rolled_at_seq = pg_sequence_last_value(sequence)
    where d.stream_id = maintain_dedup.stream_id
        and d.number < current_number
        and d.rolled_at_seq is null;
    select min(l.held_at) into oldest from postbus_data.publisher_locks(stream_id, pg_sequence_last_value(sequence)) as l;
    update postbus_data.dedup as d
    set sealed_at = clock_timestamp()
    where d.stream_id = maintain_dedup.stream_id
        and d.sealed_at is null
        and d.rolled_at_seq < coalesce(oldest, d.rolled_at_seq + 1);
    get diagnostics changed = row_count;
    step_count := step_count + changed;

    for old_number in
        delete from postbus_data.dedup as d
        where d.stream_id = maintain_dedup.stream_id
            and d.sealed_at < clock_timestamp() - time_window
        returning d.number
    loop
        execute format('drop table postbus_data.dedup_%s_%s', stream_id, old_number);
        step_count := step_count + 1;
    end loop;

    select d.* into next_table
    from postbus_data.dedup as d
    where d.stream_id = maintain_dedup.stream_id
        and d.number = current_number + 1;
    if next_table.number is not null then
        if next_table.prepared_by <> pg_current_xact_id() then
            perform postbus_data.set_dedup(stream_id, next_table.number);
            step_count := step_count + 1;
        end if;
    elsif exists (
        select
        from postbus_data.dedup as d
        where d.stream_id = maintain_dedup.stream_id
            and d.number = current_number
            and coalesce(d.begun_at, '-infinity') < clock_timestamp() - time_window
            -- Two at a time are looked at.
            and not exists (
                select from postbus_data.dedup as o where o.stream_id = d.stream_id and o.number < d.number
            )
    ) and pg_relation_size(to_regclass(format('postbus_data.dedup_%s_%s', stream_id, current_number))) > 0 then
        perform postbus_data.prepare_dedup(stream_id, current_number + 1);
        step_count := step_count + 1;
    end if;
    return step_count;
end
$$;

create or replace function postbus_data.prepare_dedup(stream_id integer, number integer)
returns void
language plpgsql
as $$
/* Create a table for message ids. The register may name it once this transaction has committed. */
begin
    execute format(
        'create table postbus_data.dedup_%s_%s (
            id text collate "C" primary key,
            seq bigint not null,
            published_at timestamptz not null
        )',
        stream_id, number
    );
    insert into postbus_data.dedup (stream_id, number) values (stream_id, number);
    perform postbus_data.apply_grants(stream_id);
end
$$;

create or replace function postbus_data.repair_dedup(stream_id integer)
returns integer
language plpgsql
volatile
as $$
/*
Point the register at the newest table of ids when it names one that does not exist. A dump may hold a register that moved on
while the tables were dumped; before step 4, a crash or a failover could leave it ahead. Maintenance may also have dropped all
tables as too old because of such a register; then a new one is prepared, and a later call names it.

Its caller holds the stream's maintenance mutex.
Returns  how many steps were taken.
*/
declare
    named integer := pg_sequence_last_value(to_regclass('postbus_data.dedup_' || stream_id));
    newest postbus_data.dedup;
begin
    if named is null then
        return 0;
    end if;
    select d.* into newest
    from postbus_data.dedup as d
    where d.stream_id = repair_dedup.stream_id
    order by d.number desc
    limit 1;
    if newest.number is null then
        perform postbus_data.prepare_dedup(stream_id, 1);
        return 1;
    end if;
    if named <= newest.number or newest.prepared_by = pg_current_xact_id() then
        return 0;
    end if;
    -- Nothing could be written to it while the register was ahead, so it may look finished.
    update postbus_data.dedup as d
    set rolled_at_seq = null,
        sealed_at = null
    where d.stream_id = newest.stream_id
        and d.number = newest.number;
    perform postbus_data.set_dedup(stream_id, newest.number);
    return 1;
end
$$;

create or replace function postbus_data.set_dedup(stream_id integer, number integer)
returns void
language plpgsql
as $$
/*
Point the register at another table of ids, effective at once for every snapshot.

The register is set and never drawn from: Postgres logs a nextval 32 numbers ahead, so after a crash or on a promoted standby
the register would name a table that nobody prepared.
*/
begin
    perform setval(to_regclass('postbus_data.dedup_' || stream_id), number);
    update postbus_data.dedup as d
    set begun_at = clock_timestamp()
    where d.stream_id = set_dedup.stream_id
        and d.number = set_dedup.number;
end
$$;

create or replace function postbus.ack(
    stream text,
    consumer text,
    ack_ids text[],
    caller postbus.caller default postbus.current_caller()
)
returns integer
language plpgsql
volatile
security definer
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
set search_path = pg_catalog, pg_temp
as $$
/*
Ack deliveries by their ack ids, in the caller's transaction: they are finished.

Returns  how many this call finished. A delivery that was settled before is not counted, nor one whose lease has expired once its message
         was given out again. Until then a late ack counts, also of a message that has become a dead letter.
Raises   PB400 for what is not an ack id, PB403 without the right to consume, PB404 for an unknown stream or consumer, PB412 outside READ COMMITTED.
Touches  lease, settled (delete), or settled (insert) for part of a lease; history (insert) when the consumer keeps one.
Locks    the leases, in order of their tokens.
*/
declare
    reader postbus_data.consumer := postbus_data.permitted_consumer(caller, stream, consumer);
begin
    perform postbus_data.check_isolation();
    return postbus_data.ack_deliveries(reader.id, reader.epoch, ack_ids);
end
$$;

create or replace function postbus.ack(
    stream text,
    consumer text,
    ack_id text,
    caller postbus.caller default postbus.current_caller()
)
returns integer
language sql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Ack one delivery. All else is as in the form that takes an array.

ack_id  an ack id; also the text of an array of them, '{…}', since an untyped literal chooses this form.

Returns, raises, touches, locks  as ack of an array does.
*/
    select postbus.ack(stream, consumer, postbus_data.as_ack_ids(ack_id), caller)
$$;

create or replace function postbus.defer(
    stream text,
    consumer text,
    ack_ids text[],
    delay interval default null,
    until timestamptz default null,
    state json default null,
    state_bytes bytea default null,
    caller postbus.caller default postbus.current_caller()
)
returns integer
language plpgsql
volatile
security definer
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
set search_path = pg_catalog, pg_temp
as $$
/*
Defer deliveries: their messages come back later, with a state that is saved with them. This does not count as an attempt; deferrals are
counted apart.

In order "key", later messages of the key wait meanwhile, and in order "partition" those of the partition.

delay        how long each message waits; null, without until, means that it is available at once.
until        when it is available, instead of a delay; a time that has passed means at once.
state        what to save with it: a JSON value. SQL null keeps what was saved before, and a JSON null removes it.
state_bytes  the same as bytes. Either is at most 65,536 bytes.

Returns  how many this call deferred; see ack for what is counted, also of leases that have expired.
Raises   PB400 for what is not an ack id, a delay of more than 365 days, a time after the year 9999, both delay and until, or both states, PB403 without the right
         to consume, PB404 for an unknown stream or consumer, PB409 for a group, PB412 outside READ COMMITTED, PB413 for a state that is too large.
Touches  settled, waiting (insert), saved (insert, update), lease (delete).
Locks    the leases, in order of their tokens.
*/
#variable_conflict use_variable
declare
    reader postbus_data.consumer := postbus_data.permitted_consumer(caller, stream, consumer);
    is_kept boolean := state is null and state_bytes is null;
    now_at timestamptz := clock_timestamp();
    due_at timestamptz;
    named record;
    message record;
    deferred integer := 0;
begin
    perform postbus_data.check_isolation();
    if reader.is_group then
        raise exception using
            errcode = 'PB409',
            message = format('"%s" of stream "%s" is a group, which gives no message back', consumer, stream),
            hint = 'a consumer can defer messages';
    end if;
    perform postbus_data.check_deferral(delay, until, state, state_bytes);
    due_at := greatest(coalesce(until, now_at + delay), now_at);
    state := case when json_typeof(state) <> 'null' then state end;
    for named in select p.token, p.seqs from postbus_data.parse_ack_ids(ack_ids) as p loop
        for message in select s.* from postbus_data.settle_messages(reader.id, reader.epoch, named.token, named.seqs, 'deferred') as s loop
            insert into postbus_data.saved as s (consumer_id, seq, deferrals, state, bytes)
            values (reader.id, message.seq, 1, state, state_bytes)
            on conflict on constraint saved_pkey do update
            set deferrals = s.deferrals + 1,
                state = case when is_kept then s.state else excluded.state end,
                bytes = case when is_kept then s.bytes else excluded.bytes end,
                saved_at = case when is_kept then s.saved_at else excluded.saved_at end;
            insert into postbus_data.waiting (consumer_id, partition, seq, key, attempts, due_at, reason)
            values (reader.id, message.partition, message.seq, message.key, message.attempt - 1, due_at, 'deferred')
            on conflict on constraint waiting_pkey do nothing;
            deferred := deferred + 1;
        end loop;
        if reader.ordering = 'key' and named.seqs is not null then
            perform postbus_data.return_later_messages_of_key(reader, named.token, named.seqs);
        end if;
    end loop;
    return deferred;
end
$$;

create or replace function postbus.defer(
    stream text,
    consumer text,
    ack_id text,
    delay interval default null,
    until timestamptz default null,
    state json default null,
    state_bytes bytea default null,
    caller postbus.caller default postbus.current_caller()
)
returns integer
language sql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Defer one delivery. All else is as in the form that takes an array.

ack_id  an ack id; also the text of an array of them, '{…}', since an untyped literal chooses this form.

Returns, raises, touches, locks  as defer of an array does.
*/
    select postbus.defer(stream, consumer, postbus_data.as_ack_ids(ack_id), delay, until, state, state_bytes, caller)
$$;

create or replace function postbus.extend(
    stream text,
    consumer text,
    ack_ids text[],
    ack_wait interval default null,
    shorten boolean default false,
    caller postbus.caller default postbus.current_caller()
)
returns integer
language plpgsql
volatile
security definer
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
set search_path = pg_catalog, pg_temp
as $$
/*
Extend leases: they now end ack_wait from now, by default the consumer's setting.

shorten  also let a lease end earlier; otherwise a lease is never shortened.

Returns  how many messages are leased until then or longer. A lease that has expired and was swept is not extended: a worker that is told so
         should stop, or ack in time.
Raises   PB400 for what is not an ack id or an ack_wait not between 1 millisecond and 7 days, PB403 without the right to consume, PB404 for an unknown
         stream or consumer, PB412 outside READ COMMITTED.
Touches  lease (update; insert of a piece, when only some messages of a lease are extended); position, with shorten.
Locks    the leases; with shorten, the mutex of each partition, until the transaction ends.
*/
declare
    reader postbus_data.consumer := postbus_data.permitted_consumer(caller, stream, consumer);
    lease_until timestamptz := clock_timestamp() + coalesce(ack_wait, reader.ack_wait);
    named record;
    held postbus_data.lease;
    chosen bigint[];
    extended integer := 0;
begin
    perform postbus_data.check_isolation();
    if (ack_wait between interval '1 millisecond' and interval '7 days') is false then
        raise exception using
            errcode = 'PB400', message = format('ack_wait = %s is not between 1 millisecond and 7 days', ack_wait);
    end if;
    if shorten then
        -- Positions must not say that no lease ends so early. Mutexes before rows, and in order: see reset_pending_since.
        perform postbus_data.reset_pending_since(reader);
    end if;
    for named in select p.token, p.seqs from postbus_data.parse_ack_ids(ack_ids) as p loop
        for held in
            select l.*
            from postbus_data.lease as l
            where l.token = named.token
                and l.consumer_id + 0 = reader.id
                and l.epoch = reader.epoch
            order by l.piece
            for no key update
        loop
            chosen := array(
                select h.seq
                from unnest(held.seqs) with ordinality as h (seq, place)
                where (named.seqs is null or h.seq in (select unnest(named.seqs)))
                    and not exists (select from postbus_data.settled as s where s.token = held.token and s.seq = h.seq)
                order by h.place
            );
            extended := extended + cardinality(chosen);
            continue when cardinality(chosen) = 0 or (held.deadline >= lease_until and not shorten);
            if cardinality(chosen) = cardinality(held.seqs) then
                update postbus_data.lease as l
                set deadline = lease_until
                where l.token = held.token
                    and l.piece = held.piece;
            else
                perform postbus_data.split_lease(held, chosen, lease_until);
            end if;
        end loop;
    end loop;
    return extended;
end
$$;

create or replace function postbus.extend(
    stream text,
    consumer text,
    ack_id text,
    ack_wait interval default null,
    shorten boolean default false,
    caller postbus.caller default postbus.current_caller()
)
returns integer
language sql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Extend the lease of one delivery. All else is as in the form that takes an array.

ack_id  an ack id; also the text of an array of them, '{…}', since an untyped literal chooses this form.

Returns, raises, touches, locks  as extend of an array does.
*/
    select postbus.extend(stream, consumer, postbus_data.as_ack_ids(ack_id), ack_wait, shorten, caller)
$$;

create or replace function postbus_data.ack_and_receive(
    stream text,
    consumer text,
    max_messages integer,
    ack_wait interval,
    expected_type text,
    ack_ids text[],
    by_position boolean,
    caller postbus.caller default postbus.current_caller()
)
returns table (
    acked integer, lease text, partition integer, seqs bigint[], attempts integer[], keys text[], data text[], bytes bytea[], headers jsonb[],
    published_at timestamptz[], saved json
)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Ack, then receive, in one call: a worker's main operation.

ack_ids      null acks nothing.
by_position  the consumer is a group. Without an ack_wait, messages are claimed without a lease; with one, a range is leased,
             and ack_ids are tokens of ranges.

It sets the search_path alone: more settings would cost as much as finding a message. The calling session has those of postbus.receive.
For the first streams that a session uses, the library calls a faster function written for the stream; see
create_receive_function.

Returns  a row for each lease, with the number of acked messages in each row; one row without a lease when nothing was received.
*/
declare
    reader postbus_data.consumer := postbus_data.permitted_consumer(caller, stream, consumer);
begin
    acked := 0;
    if ack_ids is not null then
        acked := postbus_data.ack_deliveries(reader.id, reader.epoch, ack_ids);
    end if;
    return query select ack_and_receive.acked, b.* from postbus_data.receive_with_decisions(reader, max_messages, ack_wait, expected_type, by_position, null) as b;
    if not found then
        return next;
    end if;
end
$$;

create or replace function postbus_data.ack_and_receive_in_any_session(
    stream text,
    consumer text,
    max_messages integer,
    ack_wait interval,
    expected_type text,
    ack_ids text[],
    by_position boolean,
    caller postbus.caller default postbus.current_caller()
)
returns table (
    acked integer, lease text, partition integer, seqs bigint[], attempts integer[], keys text[], data text[], bytes bytea[], headers jsonb[],
    published_at timestamptz[], saved json
)
language sql
volatile
security definer
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
set search_path = pg_catalog, pg_temp
as $$
/* ack_and_receive for sessions that are not the library's own: it sets the planner settings itself. */
    select s.* from postbus_data.ack_and_receive(stream, consumer, max_messages, ack_wait, expected_type, ack_ids, by_position, caller) as s
$$;

create or replace function postbus_data.ack_deliveries(consumer_id integer, epoch integer, ack_ids text[])
returns integer
language plpgsql
volatile
as $$
/*
Ack deliveries by their ack ids; see postbus.ack.

The common case, acking whole leases, takes two statements for all of them. Leases are locked in order of their tokens.
*/
#variable_conflict use_variable
declare
    tokens bigint[];
    gone_tokens bigint[];
    gone_count integer;
    named record;
    finished integer := 0;
begin
    if cardinality(ack_ids) = 1 and postbus_data.parse_token(ack_ids[1]) is not null then
        return postbus_data.ack_lease(consumer_id, epoch, postbus_data.parse_token(ack_ids[1]), null);
    end if;
    tokens := array(select postbus_data.parse_token(i) from unnest(ack_ids) as i where i ~ '^[0-9a-f]{16}$');
    if cardinality(tokens) = cardinality(ack_ids) then
        with gone as (
            delete from postbus_data.lease as l
            where l.token = any (tokens)
                and l.piece = 0
                and l.consumer_id + 0 = consumer_id
                and l.epoch = epoch
                and not l.has_history
                and not l.has_saved
                and not l.is_split
            returning l.token, cardinality(l.seqs) as size
        )
        select coalesce(array_agg(g.token), '{}'), coalesce(sum(g.size), 0) into gone_tokens, finished from gone as g;
        -- In a later statement: the first one has waited for sessions that were settling some of the messages.
        delete from postbus_data.settled as s where s.token = any (gone_tokens);
        get diagnostics gone_count = row_count;
        finished := finished - gone_count;
        if cardinality(gone_tokens) = cardinality(tokens) then
            return finished;
        end if;
        ack_ids := array(select i from unnest(ack_ids) as i where postbus_data.parse_token(i) <> all (gone_tokens));
    end if;
    for named in select p.token, p.seqs from postbus_data.parse_ack_ids(ack_ids) as p loop
        finished := finished + postbus_data.ack_lease(consumer_id, epoch, named.token, named.seqs);
    end loop;
    return finished;
end
$$;

create or replace function postbus_data.ack_lease(consumer_id integer, epoch integer, token bigint, seqs bigint[])
returns integer
language plpgsql
volatile
as $$
/*
Ack messages of a lease: those with the given seqs, or all for null.

Returns  how many this call finished.
Touches  lease, settled (delete) when nothing of the lease is left, otherwise settled (insert).
*/
#variable_conflict use_variable
declare
    held integer;
    is_split boolean;
    gone integer;
begin
    delete from postbus_data.lease as l
    where l.token = token
        and l.piece = 0
        and l.consumer_id + 0 = consumer_id
        and l.epoch = epoch
        and not l.has_history
        and not l.has_saved
        and (seqs is null or (cardinality(l.seqs) <= cardinality(seqs) and l.seqs <@ seqs and not l.is_split))
    returning cardinality(l.seqs), l.is_split into held, is_split;
    if held is null then
        -- Only some of its messages, its first piece is gone already, a history is kept, or a state is saved.
        return (select count(*) from postbus_data.settle_messages(consumer_id, epoch, token, seqs, 'acked'));
    end if;
    if is_split then
        with pieces as (
            delete from postbus_data.lease as l where l.token = token returning cardinality(l.seqs) as size
        )
        select held + coalesce(sum(p.size), 0) into held from pieces as p;
        -- Of pieces that have expired.
        held := held + (select count(*) from postbus_data.settle_expired(consumer_id, epoch, token, null));
    end if;
    delete from postbus_data.settled as s where s.token = token;
    get diagnostics gone = row_count;
    return held - gone;
end
$$;

create or replace function postbus_data.advance_position(place postbus_data.position, to_seq bigint)
returns void
language plpgsql
volatile
as $$
/*
Write the position of a partition, moved to a seq up to which nothing is left to lease. In a level other than the default, what is in flight is saved
where it belongs, see save_slot.

Its caller holds the partition's mutex.
Touches  position (insert; delete of the last position).
*/
begin
    if place.partition >= 100000000 then
        perform postbus_data.save_slot(place, place.leases, place.pending_bound, place.pending_since);
        place.leases := null;
        place.pending_bound := 0;
        place.pending_since := null;
        perform postbus_data.write_position(place, to_seq);
        return;
    end if;
    delete from postbus_data.position as p
    where p.consumer_id = place.consumer_id
        and p.epoch = place.epoch
        and p.partition = place.partition
        and p.read_to_seq = place.read_to_seq;
    place.read_to_seq := to_seq;
    insert into postbus_data.position select place.*;
end
$$;

create or replace function postbus_data.as_ack_ids(given text)
returns text[]
language sql
immutable
as $$
/* Ack ids from one of them, or from the text of an array; null from null. */
    select case when given like '{%' then given::text[] when given is not null then array[given] end
$$;

create or replace function postbus_data.as_batches(messages postbus.delivery[])
returns setof postbus_data.batch
language sql
immutable
as $$
/* Deliveries grouped by lease. */
    select
        left(m.ack_id, 16), m.partition, array_agg(m.seq), array_agg(m.attempt), array_agg(m.key),
        case when count(m.data) > 0 then array_agg(m.data) end,
        case when count(m.bytes) > 0 then array_agg(m.bytes) end,
        array_agg(m.headers), array_agg(m.published_at)
    from (select m.* from unnest(messages) as m order by m.seq) as m
    group by left(m.ack_id, 16), m.partition
$$;

create or replace function postbus_data.begin_claim(
    reader postbus_data.consumer,
    max_messages integer,
    ack_wait interval,
    expected_type text
)
returns postbus_data.receive_state
language plpgsql
volatile
as $$
/*
Check the arguments and circumstances of a receive, and begin it. Hot: one statement.

Raises   PB400 for arguments out of range, PB404 for a stream that was dropped meanwhile, PB409 for a group or another data
         type, PB412 outside READ COMMITTED: with a snapshot that is kept, messages would be skipped or delivered twice.
*/
declare
    claim postbus_data.receive_state;
    one_message_per_key boolean;
begin
    if max_messages is null or max_messages not between 1 and 10000 then
        raise exception using
            errcode = 'PB400',
            message = format('max_messages = %s is not between 1 and 10000', coalesce(max_messages::text, 'null'));
    end if;
    if (ack_wait between interval '1 millisecond' and interval '7 days') is false then
        raise exception using
            errcode = 'PB400',
            message = format('ack_wait = %s is not between 1 millisecond and 7 days', ack_wait);
    end if;
    if reader.is_group then
        raise exception using
            errcode = 'PB409',
            message = format('"%s" of stream "%s" is a group', reader.name, reader.stream_name),
            hint = 'claim from it, or create a consumer of another name';
    end if;
    perform postbus_data.check_isolation();
    select
        s.data_type,
        s.start_seq,
        s.one_message_per_key,
        postbus_data.has_due(reader.id, reader.epoch)
    into claim.data_type, claim.start_seq, one_message_per_key, claim.has_due
    from postbus_data.stream as s
    where s.id = reader.stream_id;
    if expected_type <> claim.data_type then
        raise exception using
            errcode = 'PB409',
            message = format('stream "%s" holds %s, not %s', reader.stream_name, claim.data_type, expected_type);
    end if;
    claim.layout := postbus_data.reading_layout(reader);
    if claim.layout is null then
        -- The stream was dropped while this receive began.
        perform postbus_data.raise_unknown_stream(reader.stream_name);
    end if;
    claim.quota := reader.max_ack_pending / (postbus_data.layout_count(claim.layout) + 1);
    if claim.quota < 100 then
        -- The limit is too small to divide among the partitions: one receive at a time counts everything in flight.
        claim.quota := null;
    end if;
    claim.lease_until := clock_timestamp() + coalesce(ack_wait, reader.ack_wait);
    claim.busy := false;
    if one_message_per_key
        or num_nonnulls(reader.filter_key_regex, reader.filter_headers, reader.filter_headers_not, reader.filter_data) > 0
    then
        claim.scan := greatest(256, 4 * max_messages);
    end if;
    return claim;
end
$$;

create or replace function postbus_data.change_layout(reader postbus_data.consumer)
returns postbus_data.consumer
language plpgsql
volatile
as $$
/*
Move a consumer to the next partitions of its stream, if their number was changed and it has read the current ones to their end.
So a key is never read in two partitions at once.

Messages that are in flight, failed or parked stay where they are, and hold their keys in the new partitions too: see
claim_by_key. In order "partition", and in a group, there may be none left.

Returns  the consumer; unchanged if it cannot move yet.
Touches  consumer (update), position (insert, delete), parked (delete), waiting (insert).
Locks    the mutexes of the old partitions, until the transaction ends. It does not move if another session holds one.
*/
#variable_conflict use_variable
declare
    next_segment postbus_data.segment;
    start_seq bigint := (select s.start_seq from postbus_data.stream as s where s.id = reader.stream_id);
    oldest_publisher bigint;
    end_seq bigint;
    place postbus_data.position;
    places postbus_data.position[];
    partition integer;
    leases bigint[];
    moved postbus_data.consumer;
begin
    select g.* into next_segment
    from postbus_data.segment as g
    where g.stream_id = reader.stream_id
        and g.partition_base > reader.partition_base
        and g.number <= postbus_data.layout_segment(postbus_data.reading_layout(reader))
    order by g.number
    limit 1;
    if next_segment.number is null then
        return reader;
    end if;
    -- As in seal_segments, which may come later than this: nobody can write to the old partitions any more.
    select min(l.held_at) into oldest_publisher
    from postbus_data.publisher_locks(
        reader.stream_id, pg_sequence_last_value(to_regclass('postbus_data.seq_' || reader.stream_id))
    ) as l;
    if exists (
        select
        from postbus_data.segment as g
        where g.stream_id = reader.stream_id
            and g.number < next_segment.number
            and g.sealed_at is null
            and (g.rolled_at_seq is null or g.rolled_at_seq >= oldest_publisher)
    ) then
        return reader;
    end if;
    end_seq := postbus_data.horizon_of(reader.stream_id);
    for partition in select p from postbus_data.segment_partitions(reader.stream_id, reader.partition_base, reader.partition_count) as p order by p loop
        -- Levels share the mutex of the partition, but for a group.
        if not pg_try_advisory_xact_lock(postbus_data.consumer_lock_class(reader.id), mod(partition, 100000000))
            or (reader.is_group and not pg_try_advisory_xact_lock(postbus_data.consumer_lock_class(reader.id), partition))
        then
            return reader;
        end if;
        place := postbus_data.position_of(reader, partition);
        if postbus_data.next_seqs(reader.stream_id, partition, greatest(place.read_to_seq, start_seq - 1), end_seq, 1) is not null then
            return reader;
        end if;
        if reader.ordering = 'partition' and (
            exists (select from postbus_data.lease as l where l.token = any (place.leases))
            or exists (select from postbus_data.waiting as w where w.consumer_id = reader.id and w.partition = partition)
        ) then
            return reader;
        end if;
        place.missed_count := place.missed_count + case
            when start_seq - 1 > place.read_to_seq
            then postbus_data.missed_between(
                reader.stream_id, partition, place.read_to_seq, least(start_seq, next_segment.after_seq + 1), reader.partition_count
            )
            else 0
        end;
        places := places || place;
    end loop;

    update postbus_data.consumer as c
    set partition_base = next_segment.partition_base,
        partition_count = next_segment.partition_count
    where c.id = reader.id
        and c.epoch = reader.epoch
        and c.partition_base = reader.partition_base
    returning c.* into moved;
    if moved.id is null then
        -- Another session was faster.
        select c.* into moved from postbus_data.consumer as c where c.id = reader.id and c.epoch = reader.epoch;
        return case when moved.id is null then reader else moved end;
    end if;
    foreach place in array places loop
        -- A receive that still looks at an old partition finds nothing to claim.
        perform postbus_data.write_position(place, 9223372036854775807);
    end loop;
    with unparked as (
        delete from postbus_data.parked as p
        where p.consumer_id = reader.id
            and p.epoch = reader.epoch
        returning p.*
    )
    insert into postbus_data.waiting (consumer_id, partition, seq, key, attempts, due_at, reason)
    select u.consumer_id, u.partition, u.seq, u.key, 0, clock_timestamp(), 'an earlier message of its key is not done'
    from unparked as u
    on conflict on constraint waiting_pkey do nothing;
    if reader.ordering = 'key' then
        select array_agg(distinct l.token) into leases
        from postbus_data.lease as l
        where l.consumer_id = reader.id
            and l.epoch = reader.epoch;
    end if;
    insert into postbus_data.position (consumer_id, epoch, partition, read_to_seq, horizon, pending_bound, leases, expired_count, missed_count)
    select
        reader.id, reader.epoch, p.n, greatest(next_segment.after_seq, reader.start_after), 0,
        case when p.n < 100000000 then postbus_data.in_flight(reader.id, reader.epoch, null, case when reader.ordering = 'none' then false end) else 0 end,
        case when p.n < 100000000 then leases end,
        case when p.n = moved.partition_base then (select sum(o.expired_count) from unnest(places) as o) else 0 end,
        case when p.n = moved.partition_base then (select sum(o.missed_count) from unnest(places) as o) else 0 end
    from postbus_data.segment_partitions(moved.stream_id, moved.partition_base, moved.partition_count) as p (n);
    return moved;
end
$$;

create or replace function postbus_data.check_deferral(delay interval, until timestamptz, state json, state_bytes bytea)
returns void
language plpgsql
volatile
as $$
/* Raise PB400 or PB413 for a deferral that cannot be. */
declare
    size integer := coalesce(octet_length(state::text), octet_length(state_bytes));
begin
    if num_nonnulls(delay, until) > 1 then
        raise exception using errcode = 'PB400', message = 'both delay and until were given', hint = 'give one of them';
    elsif (delay between interval '0' and interval '365 days') is false then
        raise exception using errcode = 'PB400', message = format('delay = %s is not between 0 and 365 days', delay);
    elsif until >= timestamptz '10000-01-01 00:00+00' or not isfinite(until) then
        raise exception using errcode = 'PB400', message = format('until = %s is too far away', until);
    elsif num_nonnulls(state, state_bytes) > 1 then
        raise exception using errcode = 'PB400', message = 'both state and state_bytes were given', hint = 'give one of them';
    elsif size > 65536 then
        raise exception using
            errcode = 'PB413',
            message = format('state has %s bytes, more than 65536', size),
            hint = 'save it elsewhere, and where it is as the state';
    end if;
end
$$;

create or replace function postbus_data.choose_messages(
    reader postbus_data.consumer,
    claim postbus_data.receive_state,
    seqs bigint[],
    keys text[],
    expired bigint[],
    last_seq bigint
)
returns postbus_data.chosen_messages
language plpgsql
volatile
as $$
/*
Choose which of the messages found in a partition are leased now. In order "key", messages whose key is not free are parked, up
to max_waiting; reading stops at the first that cannot be parked. Expired messages are counted or buried.

Its caller holds the partition's mutex, and writes the position.
Touches  parked, dead_letter (insert).
*/
#variable_conflict use_variable
declare
    picked postbus_data.chosen_messages;
    place postbus_data.position := claim.place;
    may_park integer;
    parked_from bigint;
    parked_count integer;
    message_seq bigint;
begin
    picked.seqs := seqs;
    picked.keys := keys;
    picked.last_seq := last_seq;
    if cardinality(seqs) > claim.wanted then
        picked.seqs := seqs[1:claim.wanted];
        picked.keys := keys[1:claim.wanted];
        picked.last_seq := seqs[claim.wanted];
    end if;

    if claim.blocked is not null and seqs is not null then
        may_park := greatest(1, reader.max_waiting / postbus_data.layout_count(claim.layout)) - place.parked_count;
        with found as (
            select
                f.seq,
                f.key,
                count(*) filter (where f.is_blocked) over (order by f.seq) as blocked_count,
                f.is_blocked
            from (
                select
                    u.seq,
                    u.key,
                    coalesce(
                        u.key = any (claim.blocked) or row_number() over (partition by u.key order by u.seq) > reader.max_per_key,
                        false
                    ) and u.key is not null as is_blocked
                from unnest(picked.seqs, picked.keys) as u (seq, key)
            ) as f
        ),
        parked as (
            insert into postbus_data.parked (consumer_id, epoch, partition, seq, key)
            select reader.id, reader.epoch, place.partition, f.seq, f.key
            from found as f
            where f.is_blocked
                and f.blocked_count <= may_park
            returning seq
        )
        select
            array_agg(f.seq order by f.seq) filter (where not f.is_blocked and f.blocked_count <= may_park),
            array_agg(f.key order by f.seq) filter (where not f.is_blocked and f.blocked_count <= may_park),
            case
                when bool_or(f.blocked_count > may_park)
                    then coalesce(max(f.seq) filter (where f.blocked_count <= may_park), place.read_to_seq)
                else picked.last_seq
            end,
            (select min(p.seq) from parked as p),
            (select count(*) from parked)
        into picked.seqs, picked.keys, picked.last_seq, parked_from, parked_count
        from found as f;
        place.parked_from := least(place.parked_from, parked_from);
        place.parked_count := place.parked_count + parked_count;
    end if;

    foreach message_seq in array coalesce(expired, '{}') loop
        exit when message_seq > picked.last_seq;
        place.expired_count := place.expired_count + 1;
        if reader.on_expired = 'bury' then
            perform postbus_data.add_dead_letter(reader, place.partition, message_seq, 0, 'its time to live was over');
        end if;
    end loop;
    picked.place := place;
    return picked;
end
$$;

create or replace function postbus_data.claim_batches(
    reader postbus_data.consumer,
    max_messages integer,
    ack_wait interval,
    expected_type text,
    begin_with integer
)
returns setof postbus_data.batch
language plpgsql
volatile
as $$
/*
Lease the next messages of a consumer, as postbus.receive does, and return a row for each lease.

begin_with  the partition to look at first; null for a random one, so that none starves.

Of a stream with levels, it takes messages of one level: the highest that has some.
*/
#variable_conflict use_variable
declare
    claim postbus_data.receive_state;
    partition_base integer;
    partition_count integer;
    first integer;
    step_count integer;
    partition integer;
    remaining integer := max_messages;
    wait_until timestamptz := clock_timestamp() + interval '100 milliseconds';
    scan_left integer := 65536;
    batch postbus_data.batch;
    found_count integer;
    last_claim postbus_data.receive_state;
    busy_due boolean;
    -- The partitions that other sessions hold. In later rounds, only these are looked at; null means all.
    busy_ones integer[];
    awaited integer[];
    -- The levels in use, as lanes, and how far this receive has come. See lane_of.
    lanes integer[] := '{0}';
    place integer;
    lane integer;
    -- With levels: the partitions of the level that may have something. Null means all.
    unread integer[];
    busy_level boolean;
    capacity integer;
    urgent_count bigint;
    urgent_is_taken boolean;
    last_seq bigint;
begin
    if reader.by_channel then
        return query select b.* from postbus_data.claim_channels(reader, max_messages, ack_wait, expected_type, begin_with) as b;
        return;
    end if;
    claim := postbus_data.begin_claim(reader, max_messages, ack_wait, expected_type);
    if reader.expire_after is not null then
        perform postbus_data.note_use(reader);
    end if;
    if reader.paused then
        return;
    end if;
    if claim.quota is null then
        remaining := postbus_data.free_capacity(reader, max_messages);
    end if;
    -- A busy consumer is asked many times a second: most need not even look whether it was swept.
    if random() < 0.1 and postbus_data.sweep_now_and_then(reader) then
        claim.has_due := true;
    end if;

    while remaining > 0 loop
        busy_due := false;
        busy_ones := '{}';
        partition_base := postbus_data.layout_base(claim.layout);
        partition_count := postbus_data.layout_count(claim.layout);
        first := case
            when begin_with - partition_base between 0 and partition_count - 1 then begin_with - partition_base
            else floor(random() * partition_count)
        end;
        -- In order "key" idle partitions come first: there, nothing has to be parked.
        step_count := case when reader.ordering = 'key' then 2 else 1 end * partition_count;
        if postbus_data.has_levels(claim.layout) then
            -- In this order: see note_levels.
            urgent_count := pg_sequence_last_value(to_regclass('postbus_data.urgent_' || reader.stream_id));
            last_seq := pg_sequence_last_value(to_regclass('postbus_data.seq_' || reader.stream_id));
            claim.horizon := postbus_data.horizon_of(reader.stream_id);
            lanes := postbus_data.lanes_in_turn(reader, claim.horizon);
            urgent_is_taken := urgent_count <= coalesce(
                (
                    select u.read_to_count
                    from postbus_data.urgent_position as u
                    where u.consumer_id = reader.id
                        and u.epoch = reader.epoch
                    order by u.read_to_count desc
                    limit 1
                ),
                0
            );
        end if;
        place := 1;
        capacity := remaining;
        -- One level at a time, so that what a worker gets is all of one level.
        while place <= cardinality(lanes) and remaining = capacity and scan_left > 0 loop
            lane := lanes[place];
            busy_level := false;
            if postbus_data.has_levels(claim.layout) then
                if lane = 0 and not urgent_is_taken and reader.ageing is null then
                    perform postbus_data.note_urgent_read(reader, urgent_count, last_seq, claim.horizon);
                end if;
                unread := case
                    when lane >= 500000000
                        and urgent_is_taken
                        and not exists (
                            select
                            from postbus_data.waiting as w
                            where w.consumer_id = reader.id
                                and w.partition between lane and lane + 99999999
                        )
                    then '{}'
                    else array(select w.partition from postbus_data.lane_work(reader, lane, claim.horizon) as w)
                end;
                claim.has_due := postbus_data.has_due(reader.id, reader.epoch, lane);
            end if;
            if claim.has_due then
                claim := postbus_data.claim_due(reader, claim, remaining, lane);
                busy_due := claim.busy and postbus_data.has_due(reader.id, reader.epoch, lane);
                if claim.messages is not null then
                    return query select b.* from postbus_data.as_batches(claim.messages) as b;
                    remaining := remaining - cardinality(claim.messages);
                end if;
            end if;
            for step in 0 .. step_count - 1 loop
                exit when remaining <= 0 or (step = partition_count and remaining < max_messages);
                partition := lane + partition_base + mod(first + step, partition_count);
                continue when not partition = any (awaited) or not partition = any (unread);
                continue when step_count > partition_count and step < partition_count and not postbus_data.is_idle(reader, partition);
                last_claim := null;
                loop
                    claim := postbus_data.claim_partition(reader, claim, partition, remaining);
                    if claim.busy then
                        busy_ones := busy_ones || partition;
                        busy_level := true;
                    end if;
                    if claim.messages is not null then
                        return query select b.* from postbus_data.as_batches(claim.messages) as b;
                        remaining := remaining - cardinality(claim.messages);
                    end if;
                    -- Also if the last look changed nothing: the limit of parked messages is reached.
                    exit when claim.wanted is null
                        or (claim.after_seq = last_claim.after_seq and (claim.place).horizon = (last_claim.place).horizon);
                    execute 'select b.* from postbus_data.claim_' || reader.stream_id || '_' || claim.segment || '($1, $2) as b'
                    into batch
                    using reader, claim;
                    found_count := coalesce(cardinality(batch.seqs), 0);
                    if found_count > 0 then
                        return next batch;
                        remaining := remaining - found_count;
                    end if;
                    exit when found_count = claim.wanted;
                    last_claim := claim;
                    if claim.scan is not null then
                        -- It has moved on as far as it has looked, which costs a little also where there was nothing; look at more at a time.
                        scan_left := scan_left - coalesce(batch.attempts[1], claim.scan) - 16;
                        exit when scan_left <= 0;
                        claim.scan := least(4 * claim.scan, 16384);
                    elsif claim.blocked is not null then
                        -- The position is now after the parked messages; there may be free keys further on.
                        null;
                    elsif batch.partition is null then
                        -- All that it looked at had expired, and it has moved on behind it.
                        scan_left := scan_left - batch.attempts[1];
                        exit when scan_left <= 0;
                    elsif claim.to_seq < (claim.place).horizon then
                        -- The segment is read to its end.
                        if found_count = 0 then
                            perform postbus_data.advance_position(claim.place, claim.to_seq);
                        end if;
                    else
                        -- All is read up to the horizon; if an earlier claim saw it, look where it is now.
                        if claim.horizon is not null then
                            if found_count = 0 and (
                                (claim.place).read_to_seq = reader.start_after
                                or (claim.place).horizon - (claim.place).read_to_seq >= remaining * partition_count
                            ) then
                                -- So that it does not look new, or full, the next time.
                                perform postbus_data.advance_position(claim.place, (claim.place).horizon);
                            end if;
                            exit;
                        end if;
                        claim.horizon := postbus_data.horizon_of(reader.stream_id);
                    end if;
                end loop;
            end loop;
            busy_level := busy_level or busy_due;
            if busy_level and place < cardinality(lanes) and remaining = capacity and clock_timestamp() < wait_until then
                -- Another session looks at messages of this level: they do not wait behind lower ones.
                busy_ones := '{}';
                perform pg_sleep(0.001);
            else
                place := place + 1;
            end if;
        end loop;
        exit when remaining < max_messages or scan_left <= 0;

        -- Nothing found. Before saying so, check the partitions that others hold, and sweep what has expired.
        if busy_ones <> '{}' and not postbus_data.is_behind(reader) then
            claim.horizon := postbus_data.horizon_of(reader.stream_id);
            busy_ones := array(
                select p from unnest(busy_ones) as p where postbus_data.has_more(reader, p, claim.start_seq, claim.horizon)
            );
        end if;
        if busy_due or busy_ones <> '{}' then
            -- Only one session waits for all old partitions when it is time to move to the new ones.
            exit when clock_timestamp() > wait_until
                or (postbus_data.is_behind(reader) and not pg_try_advisory_xact_lock(postbus_data.consumer_lock_class(reader.id), postbus_data.consumer_lock('change layout')));
            awaited := busy_ones;
            perform pg_sleep(0.0005);
        else
            awaited := null;
            if postbus_data.is_behind(reader) then
                reader := postbus_data.change_layout(reader);
            end if;
            if claim.layout <> postbus_data.reading_layout(reader) then
                claim := postbus_data.begin_claim(reader, max_messages, ack_wait, expected_type);
                if claim.quota is null then
                    remaining := postbus_data.free_capacity(reader, max_messages);
                end if;
            elsif postbus_data.sweep_consumer(reader) = 0 then
                exit;
            end if;
        end if;
        claim.has_due := true;
        claim.horizon := null;
    end loop;
end
$$;

create or replace function postbus_data.claim_by_key(reader postbus_data.consumer, claim postbus_data.receive_state, wanted integer)
returns postbus_data.receive_state
language plpgsql
volatile
as $$
/*
In order "key": find the keys of a partition that are not free, and lease messages that waited for a key that has become free.

A key is not free while a lease in flight holds a message of it, whatever its level, while a message of it and of the same level has failed or is parked,
or while a dead letter holds it. Failed and parked messages go first, in order of seq, up to the first message of the key that is not due yet.

After a change of the partition count, failed messages of older partitions belong to the partition that their key has now. They
are leased under the partition that they were published to, and only those of one such partition at a time: when a message
fails, the later messages of its key to return are in its lease.

Its caller holds the partition's mutex. Leases are read before failures: so a nack that commits in between leaves its key
blocked twice, and not free.
Returns  the claim, with claim.blocked; its place is null when no new message may be leased now.
Touches  lease, position (insert), waiting, parked (delete).
*/
declare
    place postbus_data.position := claim.place;
    -- Failed and parked messages hold their keys within their level.
    lane integer := (claim.place).partition / 100000000 * 100000000;
    partition_base integer := lane + postbus_data.layout_base(claim.layout);
    in_flight text[];
    origin integer;
    seqs bigint[];
    attempts integer[];
    exceptional text[];
    free_seqs bigint[];
    taken_seqs bigint[];
    parked_left bigint;
begin
    claim.blocked := null;
    if place.leases is not null then
        select
            array_agg(distinct l.token),
            array_agg(distinct m.key) filter (where m.key is not null and not exists (
                select from postbus_data.settled as s where s.token = l.token and s.seq = m.seq
            ))
        into place.leases, in_flight
        -- One probe for each token. A join with unnest would be planned as a walk through the whole index.
        from postbus_data.lease as l
        cross join lateral unnest(l.seqs, l.keys) as m (seq, key)
        where l.token = any (place.leases);
    end if;

    if place.parked_from is not null
        or reader.on_dead = 'hold'
        or exists (select from postbus_data.waiting as w where w.consumer_id = reader.id and w.partition = place.partition)
        or exists (select from postbus_data.waiting as w where w.consumer_id = reader.id and w.partition >= lane and w.partition < partition_base)
    then
        with held as (
            select w.partition, w.seq, w.key, w.attempts, w.due_at <= clock_timestamp() as is_due
            from postbus_data.waiting as w
            where w.consumer_id = reader.id
                and w.partition = place.partition
            union all
            select w.partition, w.seq, w.key, w.attempts, w.due_at <= clock_timestamp()
            from postbus_data.waiting as w
            where w.consumer_id = reader.id
                and w.partition >= lane
                and w.partition < partition_base
                and lane + postbus_data.current_partition(claim.layout, w.key, w.seq) = place.partition
            union all
            select p.partition, p.seq, p.key, 0, true
            from postbus_data.parked as p
            where p.consumer_id = reader.id
                and p.epoch = reader.epoch
                and p.partition = place.partition
                and p.seq >= place.parked_from
            union all
            -- Holds its key, and is never given itself.
            select d.partition, d.seq, d.key, 0, false
            from postbus_data.dead_letter as d
            where reader.on_dead = 'hold'
                and d.consumer_id + 0 = reader.id
                -- Whatever their levels.
                and d.partition = any (case
                    when postbus_data.has_levels(claim.layout) then array(select l + place.partition - lane from unnest(postbus_data.lanes(reader.stream_id)) as l)
                    else array[place.partition]
                end)
                and d.key is not null
            union all
            select d.partition, d.seq, d.key, 0, false
            from postbus_data.dead_letter as d
            where reader.on_dead = 'hold'
                and d.consumer_id + 0 = reader.id
                and mod(d.partition, 100000000) < partition_base - lane
                and d.key is not null
        ),
        by_key as (
            -- Messages without a key stand alone.
            select h.*, case when h.key is null then h.seq end as alone,
                first_value(h.partition) over (partition by h.key, case when h.key is null then h.seq end order by h.seq) as key_origin
            from held as h
        ),
        judged as (
            select
                k.*,
                bool_and(k.is_due and k.partition = k.key_origin and (k.key = any (in_flight)) is not true) over so_far
                and row_number() over so_far <= coalesce(reader.max_per_key, wanted) as is_free
            from by_key as k
            window so_far as (partition by k.key, k.alone order by k.seq)
        )
        select
            array_agg(j.seq order by j.seq) filter (where j.is_free and j.partition = j.origin),
            array_agg(j.attempts + 1 order by j.seq) filter (where j.is_free and j.partition = j.origin),
            array_agg(distinct j.key),
            min(j.origin)
        into seqs, attempts, exceptional, origin
        from (select j.*, first_value(j.partition) over (order by j.is_free desc, j.seq) as origin from judged as j) as j;
    end if;
    if seqs is not null then
        seqs := seqs[1:wanted];
        attempts := attempts[1:wanted];
        free_seqs := postbus_data.lock_waiting(reader.id, origin, seqs);
        with taken as (
            delete from postbus_data.waiting as w
            where w.consumer_id = reader.id
                and w.partition = origin
                and w.seq = any (free_seqs)
            returning w.seq
        )
        select array_agg(t.seq) into taken_seqs from taken as t;
        if place.parked_from is not null then
            with taken as (
                delete from postbus_data.parked as p
                where p.consumer_id = reader.id
                    and p.epoch = reader.epoch
                    and p.partition = place.partition
                    and p.seq = any (free_seqs)
                returning p.seq
            )
            select place.parked_count - count(*), taken_seqs || array_agg(t.seq)
            into place.parked_count, taken_seqs
            from taken as t;
            select p.seq into parked_left
            from postbus_data.parked as p
            where p.consumer_id = reader.id
                and p.epoch = reader.epoch
                and p.partition = place.partition
                and p.seq >= place.parked_from
            order by p.seq
            limit 1;
            place.parked_from := parked_left;
        end if;
        if cardinality(taken_seqs) is distinct from cardinality(seqs) then
            -- A late ack holds some of them.
            select array_agg(m.seq order by m.place), array_agg(m.attempt order by m.place)
            into seqs, attempts
            from unnest(seqs, attempts) with ordinality as m (seq, attempt, place)
            where m.seq = any (taken_seqs);
        end if;
        claim.messages := postbus_data.lease_redelivered(reader, claim, place, origin, seqs, attempts);
        claim.place := null;
        return claim;
    end if;

    if in_flight is not null or exceptional is not null or reader.max_per_key is not null then
        claim.blocked := coalesce(in_flight, '{}') || array_remove(coalesce(exceptional, '{}'), null);
    end if;
    claim.place := place;
    return claim;
end
$$;

create or replace function postbus_data.claim_by_partition(reader postbus_data.consumer, claim postbus_data.receive_state, wanted integer)
returns postbus_data.receive_state
language plpgsql
volatile
as $$
/*
In order "partition": decide whether new messages of a partition may be leased. They may not while one of its leases is in
flight or one of its messages waits for redelivery. Waiting messages at its head are leased here, in order, as far as they are
due; the first one that is not due, or that a late ack holds, holds the partition.

Its caller holds the partition's mutex.
Returns  the claim; its place is null when no new message may be leased.
Touches  lease, position (insert), waiting (delete).
*/
declare
    place postbus_data.position := claim.place;
    lane integer := (claim.place).partition / 100000000 * 100000000;
    partition_base integer := lane + postbus_data.layout_base(claim.layout);
    origin integer;
    seqs bigint[];
    attempts integer[];
begin
    claim.place := null;
    if exists (select from postbus_data.lease as l where l.token = any (place.leases)) then
        return claim;
    end if;
    place.leases := null;
    select array_agg(h.seq order by h.seq), array_agg(h.attempts + 1 order by h.seq) filter (where h.is_due), min(h.origin)
    into seqs, attempts, origin
    from (
        select f.*, bool_and(f.due_at <= clock_timestamp() and f.partition = f.origin) over (order by f.seq) as is_due
        from (
            select w.*, first_value(w.partition) over (order by w.seq) as origin
            from (
                (
                    select w.partition, w.seq, w.attempts, w.due_at
                    from postbus_data.waiting as w
                    where w.consumer_id = reader.id
                        and w.partition = place.partition
                    order by w.seq
                    limit wanted
                )
                union all
                -- A message of an older layout, redelivered.
                select w.partition, w.seq, w.attempts, w.due_at
                from postbus_data.waiting as w
                where w.consumer_id = reader.id
                    and w.partition >= lane
                    and w.partition < partition_base
                    and lane + postbus_data.current_partition(claim.layout, w.key, w.seq) = place.partition
            ) as w
        ) as f
    ) as h;
    if seqs is null then
        claim.place := place;
    elsif attempts is not null then
        seqs := seqs[1:least(cardinality(attempts), wanted)];
        attempts := attempts[1:cardinality(seqs)];
        seqs := postbus_data.lock_waiting(reader.id, origin, seqs);
        with taken as (
            delete from postbus_data.waiting as w
            where w.consumer_id = reader.id
                and w.partition = origin
                and w.seq = any (seqs)
            returning w.seq, w.attempts
        )
        select array_agg(t.seq order by t.seq), array_agg(t.attempts + 1 order by t.seq) into seqs, attempts from taken as t;
        if seqs is not null then
            claim.messages := postbus_data.lease_redelivered(reader, claim, place, origin, seqs, attempts);
        end if;
    end if;
    return claim;
end
$$;

create or replace function postbus_data.claim_due(
    reader postbus_data.consumer,
    claim postbus_data.receive_state,
    wanted integer,
    lane integer default 0
)
returns postbus_data.receive_state
language plpgsql
volatile
as $$
/*
Lease messages of the redelivery log of a level, in the order in which they came due: one lease row for each partition among them. Messages
purged since then are skipped.

Touches  lease, redelivery_position (insert; delete of the last one), due (delete).
Locks    the mutex of the redelivery logs; the claim is busy when another session holds it.
*/
#variable_conflict use_variable
declare
    place postbus_data.redelivery_position;
    last_n bigint;
    token bigint;
    batch record;
    messages postbus.delivery[];
    bound integer;
begin
    claim.messages := null;
    claim.busy := false;
    claim.busy := not pg_try_advisory_xact_lock(postbus_data.consumer_lock_class(reader.id), postbus_data.consumer_lock('redeliver'));
    if claim.busy then
        return claim;
    end if;
    place := postbus_data.redelivery_position_of(reader, lane);
    -- The logs of all levels share the quota, and each position knows only what was read from its own.
    bound := case
        when postbus_data.has_levels(claim.layout) then postbus_data.in_flight(reader.id, reader.epoch, null, true)
        else place.pending_bound
    end;
    if bound + wanted > claim.quota then
        bound := postbus_data.in_flight(reader.id, reader.epoch, null, true);
        wanted := least(wanted, claim.quota - bound);
        if wanted <= 0 then
            return claim;
        end if;
    end if;

    for batch in
        select
            d.partition,
            array_agg(d.seq) as seqs,
            array_agg(d.attempts + 1) as attempts,
            max(d.n) as last_n
        from (
            select d.*
            from postbus_data.due as d
            where d.consumer_id = reader.id
                and d.epoch = reader.epoch
                and d.lane = lane
                and d.n > place.read_to_n
            order by d.n
            limit wanted
        ) as d
        group by d.partition
    loop
        token := postbus_data.new_token();
        messages := postbus_data.fetch_named(
            reader.stream_id, claim.data_type, batch.partition, batch.seqs, batch.attempts, token, live_only => true
        );
        perform postbus_data.add_dead_letters_without_message(reader, batch.partition, batch.seqs, batch.attempts, messages);
        last_n := greatest(last_n, batch.last_n);
        continue when messages is null;
        insert into postbus_data.lease (
            token, consumer_id, epoch, partition, seqs, attempts, received_at, deadline, has_history, has_saved
        )
        select
            token, reader.id, reader.epoch, batch.partition, array_agg(m.seq), array_agg(m.attempt), clock_timestamp(), claim.lease_until,
            reader.keep_history is not null, postbus_data.has_saved(reader.id, batch.seqs)
        from unnest(messages) as m;
        claim.messages := claim.messages || messages;
    end loop;
    if last_n is null then
        return claim;
    end if;
    delete from postbus_data.due as d
    where d.consumer_id = reader.id
        and d.epoch = reader.epoch
        and d.lane = lane
        and d.n > place.read_to_n
        and d.n <= last_n;
    delete from postbus_data.redelivery_position as p
    where p.consumer_id = reader.id
        and p.epoch = reader.epoch
        and p.lane = lane
        and p.read_to_n = place.read_to_n;
    insert into postbus_data.redelivery_position (consumer_id, epoch, read_to_n, pending_bound, lane)
    values (reader.id, reader.epoch, last_n, bound + coalesce(cardinality(claim.messages), 0), lane);
    return claim;
end
$$;

create or replace function postbus_data.claim_older(
    reader postbus_data.consumer,
    claim postbus_data.receive_state,
    place postbus_data.position,
    newest integer
)
returns postbus_data.receive_state
language plpgsql
volatile
as $$
/*
Find the segment with the next messages of a partition, when that may not be the newest segment, and up to which seq it is the
only one.

Its caller holds the partition's mutex. newest is the segment that the register named after claim.to_seq was known.
Touches  as claim_overlap, if two segments overlap here.
*/
declare
    next_starts_after bigint;
begin
    claim.segment := coalesce(
        (
            select g.number
            from postbus_data.segment as g
            where g.stream_id = reader.stream_id
                and g.last_seq > claim.after_seq
            order by g.last_seq, g.number
            limit 1
        ),
        (
            select g.number
            from postbus_data.segment as g
            where g.stream_id = reader.stream_id
                and g.last_seq is null
            order by g.number
            limit 1
        )
    );
    place.segment := claim.segment;
    claim.place := place;
    if claim.segment = newest then
        return claim;
    end if;
    -- Nearly always the next number; an older one may have been dropped.
    select g.after_seq into next_starts_after
    from postbus_data.segment as g
    where g.stream_id = reader.stream_id
        and g.number > claim.segment
    order by g.number
    limit 1;
    if next_starts_after <= claim.after_seq then
        return postbus_data.claim_overlap(reader, claim);
    end if;
    claim.to_seq := least(claim.to_seq, next_starts_after);
    return claim;
end
$$;

create or replace function postbus_data.claim_overlap(reader postbus_data.consumer, claim postbus_data.receive_state)
returns postbus_data.receive_state
language plpgsql
volatile
as $$
/*
Lease the next messages of a partition where two segments overlap: publishers that were active when the log rolled wrote to the
older segment, others to the newer one.

Its caller holds the partition's mutex.
Touches  as choose_messages and lease_messages.
*/
declare
    place postbus_data.position := claim.place;
    seqs bigint[];
    keys text[];
    found_count integer;
    last_seq bigint;
    picked postbus_data.chosen_messages;
    prefix text;
    superseded bigint[];
begin
    claim.messages := postbus_data.fetch_messages(
        reader.stream_id, place.partition, claim.after_seq, claim.to_seq, coalesce(claim.scan, claim.wanted)
    );
    superseded := postbus_data.superseded(reader.stream_id, claim.messages);
    select
        array_agg(m.seq) filter (where postbus_data.passes(reader, m) and m.seq <> all (superseded)),
        array_agg(m.key) filter (where postbus_data.passes(reader, m) and m.seq <> all (superseded)),
        max(m.seq),
        count(*)
    into seqs, keys, last_seq, found_count
    from unnest(claim.messages) as m;
    if found_count < coalesce(claim.scan, claim.wanted) then
        last_seq := claim.to_seq;
    end if;
    picked := postbus_data.choose_messages(reader, claim, seqs, keys, null, last_seq);
    claim.place := picked.place;
    if picked.seqs is not null then
        prefix := postbus_data.lease_messages(reader, claim, picked.seqs, picked.keys, picked.last_seq);
    elsif picked.last_seq > place.read_to_seq then
        perform postbus_data.advance_position(picked.place, picked.last_seq);
    end if;
    claim.messages := nullif(
        array(
            select row(prefix || '-' || m.seq, 1, m.seq, m.partition, m.key, m.data, m.bytes, m.headers, m.published_at, 0, null, null, null)::postbus.delivery
            from unnest(claim.messages) as m
            where m.seq = any (picked.seqs)
            order by m.seq
        ),
        '{}'
    );
    claim.wanted := null;
    return claim;
end
$$;

create or replace function postbus_data.claim_partition(
    reader postbus_data.consumer,
    claim postbus_data.receive_state,
    partition integer,
    wanted integer
)
returns postbus_data.receive_state
language plpgsql
volatile
as $$
/*
Find the messages of one partition that may be leased, for the segment's own function; claim.wanted is null when there are none.
Messages that only another way can lease (failed ones, or those where two segments overlap) are leased here: claim.messages.
Hot.

Touches  as claim_by_key, claim_by_partition and claim_overlap, if it calls them.
Locks    the partition's mutex, which is the same for all levels; the claim is busy when another session holds it.

Mutex, horizon and rows are separate statements, each with a younger snapshot than the one before.
*/
#variable_conflict use_variable
declare
    place postbus_data.position;
    slot postbus_data.position;
    newest integer;
    lane integer := partition / 100000000 * 100000000;
begin
    -- The mutex, and what is in flight, are those of the partition in all levels.
    partition := partition - lane;
    claim.messages := null;
    claim.wanted := null;
    claim.busy := not pg_try_advisory_xact_lock(postbus_data.consumer_lock_class(reader.id), partition);
    if claim.busy then
        return claim;
    end if;
    place := (
        select p
        from postbus_data.position as p
        where p.consumer_id = reader.id
            and p.epoch = reader.epoch
            and p.partition = lane + partition
        order by p.read_to_seq desc
        limit 1
    );
    if lane > 0 then
        -- What is in flight is recorded with the default level, see save_slot.
        slot := postbus_data.position_of(reader, partition);
        if slot.read_to_seq = 9223372036854775807 then
            return claim;
        end if;
        if place.read_to_seq is null then
            -- The horizon was read before.
            place := postbus_data.first_position(
                reader, lane + partition, greatest(reader.start_after, least(postbus_data.lane_start(reader.stream_id, lane), claim.horizon))
            );
        end if;
        place.leases := slot.leases;
        place.pending_bound := slot.pending_bound;
        place.pending_since := slot.pending_since;
    end if;
    if place.read_to_seq is null then
        place := postbus_data.first_position(reader, partition, reader.start_after);
    elsif place.read_to_seq = 9223372036854775807 then
        -- The layout was changed meanwhile.
        return claim;
    elsif reader.ordering = 'none' and place.leases is not null then
        -- It has become a consumer by channel meanwhile.
        return claim;
    end if;

    if place.pending_bound + wanted > claim.quota then
        select r.pending_bound, r.pending_since into place.pending_bound, place.pending_since
        from postbus_data.count_in_flight(
            reader.id, reader.epoch, partition, postbus_data.layout_base(claim.layout),
            case when reader.ordering <> 'none' then coalesce(place.leases, '{}') end, place.pending_since
        ) as r;
        wanted := least(wanted, claim.quota - place.pending_bound);
        if wanted <= 0 then
            return claim;
        end if;
    end if;
    if reader.ordering <> 'none' then
        claim.place := place;
        if reader.ordering = 'key' then
            claim := postbus_data.claim_by_key(reader, claim, wanted);
        else
            claim := postbus_data.claim_by_partition(reader, claim, wanted);
        end if;
        if claim.place is null then
            return claim;
        end if;
        place := claim.place;
    end if;

    -- Reuse the horizon of an earlier claim while it probably leaves enough to read.
    if claim.horizon is null and place.horizon - place.read_to_seq < wanted * postbus_data.layout_count(claim.layout) then
        claim.horizon := postbus_data.horizon_of(reader.stream_id);
    end if;
    place.horizon := greatest(place.horizon, claim.horizon);
    claim.after_seq := greatest(place.read_to_seq, claim.start_seq - 1);
    if claim.start_seq - 1 > place.read_to_seq then
        place.missed_count := place.missed_count + postbus_data.missed_between(
            reader.stream_id, lane + partition, place.read_to_seq, claim.start_seq, postbus_data.layout_count(claim.layout)
        );
    end if;
    if place.horizon <= claim.after_seq then
        return claim;
    end if;
    -- Read after the horizon: messages below it are in this segment or an older one.
    newest := postbus_data.layout_segment(pg_sequence_last_value(to_regclass('postbus_data.layout_' || reader.stream_id)));
    claim.segment := newest;
    claim.to_seq := place.horizon;
    claim.wanted := wanted;
    if place.segment <> newest then
        return postbus_data.claim_older(reader, claim, place, newest);
    end if;
    claim.place := place;
    return claim;
end
$$;

create or replace function postbus_data.consumers_to_wake(
    consumer_ids bigint[],
    caller postbus.caller default postbus.current_caller()
)
returns table (wake boolean, next_seconds double precision)
language plpgsql
volatile
security definer
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
set search_path = pg_catalog, pg_temp
as $$
/*
For each of several waiting consumers, in their order: whether it may have something to receive other than new messages.
Read-only.

A consumer is awake if it has expired leases, due retries or scheduled messages; if an ack may free capacity at any moment (in
an order other than none, or with a small max_ack_pending, while something is in flight); if a channel may have a turn; or if it may move to another layout. A
dropped consumer is awake, so that its receiver gets the error.

next_seconds  how long until the next lease, retry or scheduled message is due, or the rate of a channel lets it go on; null if none is known.
*/
declare
    reader postbus_data.consumer;
    now_at timestamptz := clock_timestamp();
    from_time timestamptz;
    next_at timestamptz;
    scheduled_at timestamptz;
begin
    for place in 1 .. coalesce(cardinality(consumer_ids), 0) loop
        wake := true;
        next_seconds := null;
        select c.* into reader from postbus_data.consumer as c where c.id = consumer_ids[place];
        if postbus_data.has_right(caller, reader.stream_id, 'consume') then
            from_time := (postbus_data.sweep_state_of(reader)).swept_to - interval '5 seconds';
            if from_time > now_at then
                -- The clock was set back.
                from_time := '-infinity';
            end if;
            next_at := least(
                (
                    select l.deadline
                    from postbus_data.lease as l
                    where l.consumer_id = reader.id
                        and l.deadline > from_time
                    order by l.deadline
                    limit 1
                ),
                (
                    select w.due_at
                    from postbus_data.waiting as w
                    where w.consumer_id + 0 = reader.id
                        and w.due_at > from_time
                    order by w.due_at
                    limit 1
                )
            );
            scheduled_at := (
                select s.deliver_at
                from postbus_data.scheduled as s
                where s.stream_id = reader.stream_id
                order by s.deliver_at
                limit 1
            );
            wake := next_at <= now_at or scheduled_at <= now_at or exists (select from unnest(postbus_data.lanes(reader.stream_id)) as lane where postbus_data.has_due(reader.id, reader.epoch, lane))
                or postbus_data.is_behind(reader)
                or (next_at is not null and (reader.ordering <> 'none' or reader.max_ack_pending < 1000));
            if reader.by_channel then
                wake := wake or postbus_data.has_turn(reader);
                next_at := least(next_at, postbus_data.next_turn_at(reader, now_at));
            end if;
            next_seconds := extract(epoch from least(next_at, scheduled_at) - now_at);
        end if;
        wake := coalesce(wake, false);
        return next;
    end loop;
end
$$;

create or replace function postbus_data.correct_history(
    consumer_id integer,
    seq bigint,
    attempt integer,
    outcome text,
    reason text
)
returns void
language sql
volatile
as $$
/*
Correct the outcome of a delivery whose lease had expired, and that was settled afterwards. Nothing happens if no history was kept.

Touches  history (update).
*/
    update postbus_data.history as h
    set outcome = correct_history.outcome,
        reason = correct_history.reason,
        finished_at = clock_timestamp()
    where h.consumer_id = correct_history.consumer_id
        and h.first_seq = correct_history.seq
        and h.attempts = array[correct_history.attempt]
        and h.reason = 'the lease expired'
$$;

create or replace function postbus_data.count_in_flight(
    consumer_id integer,
    epoch integer,
    partition integer,
    partition_base integer,
    leases bigint[],
    since timestamptz,
    out pending_bound bigint,
    out pending_since timestamptz
)
language plpgsql
volatile
as $$
/*
How many messages of a partition are in flight, of all levels together, for a position whose pending_bound is used up.

leases   the leases of the position, in an order that lists them. Otherwise null: then only first deliveries are counted,
         because failed messages have a quota of their own, and those of partitions below partition_base, of an older layout,
         count towards every partition, so that the total is never too high.
since    pending_since of the position.

Returns  pending_since: no counted lease ends before it. So the next count skips all leases finished before this one, which
         Postgres cannot remove from the index while somebody holds a snapshot.
*/
#variable_conflict use_variable
begin
    if leases is not null then
        select coalesce(sum(cardinality(l.seqs) - s.settled_count), 0)
        into pending_bound
        from postbus_data.lease as l
        cross join lateral (
            select count(*) as settled_count
            from postbus_data.settled as s
            where s.token = l.token
                and s.seq = any (l.seqs)
        ) as s
        where l.token = any (leases)
            and l.consumer_id + 0 = consumer_id
            and l.epoch = epoch;
        return;
    end if;
    select coalesce(sum(cardinality(l.seqs) - s.settled_count), 0), coalesce(min(l.deadline), 'infinity')
    into pending_bound, pending_since
    from postbus_data.lease as l
    cross join lateral (
        select count(*) as settled_count
        from postbus_data.settled as s
        where s.token = l.token
            and s.seq = any (l.seqs)
    ) as s
    where l.consumer_id = consumer_id
        and l.deadline >= coalesce(since, '-infinity'::timestamptz)
        and l.epoch = epoch
        and (mod(l.partition, 100000000) = partition or mod(l.partition, 100000000) < partition_base)
        and l.attempts is null;
end
$$;

create or replace function postbus_data.create_ack_function(stream_id integer)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
/*
Write the function postbus_data.ack_<stream id>, which acks deliveries of one stream as postbus.ack does.

It runs with the rights of its owner, and asks nobody: who may call it is a matter of grants, see apply_grants. So it has no
caller to look up. Its argument stream is not used: it is there so that a call can be sent to postbus.ack instead. It does not
depend on segments or settings, so it is written once, when the stream is created.
*/
begin
    execute postbus_data.render(
        postbus_data.ack_template(),
        (
            select jsonb_build_object('stream_id', s.id, 'stream_name', quote_literal(s.name))
            from postbus_data.stream as s
            where s.id = create_ack_function.stream_id
        )
    );
end
$$;

create or replace function postbus_data.create_receive_function(stream_id integer)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
/*
Write the function postbus_data.ack_and_receive_<stream id>, which acks and receives as postbus_data.ack_and_receive does.

It goes the shortest way when nothing has to be decided about messages of the newest segment, which is nearly always so: those of one partition that has
enough of them, or else what there is in several (gathering). Few statements, planned once for a session (docs/decisions/0008). Whatever it does not know
or like it leaves to receive_with_decisions. Written anew when the stream is created or altered, when a new segment is begun and
when a priority is used first.
*/
declare
    stream postbus_data.stream;
    names jsonb;
    layout bigint := pg_sequence_last_value(to_regclass('postbus_data.layout_' || stream_id));
    has_levels boolean := postbus_data.has_levels(layout);
begin
    select s.* into stream from postbus_data.stream as s where s.id = stream_id;
    names := jsonb_build_object(
        'stream_id', stream.id,
        'stream_name', quote_literal(stream.name),
        'segment', postbus_data.layout_segment(layout),
        'log_table', postbus_data.log_table(stream.id, postbus_data.layout_segment(layout)),
        'layout', layout,
        'partition_base', postbus_data.layout_base(layout),
        'partition_count', postbus_data.layout_count(layout),
        -- Not all of them at once, so that another worker finds some too.
        'partitions_at_once', least(16, (postbus_data.layout_count(layout) + 1) / 2),
        -- So many messages fit into an array, however large each is.
        'array_limit', least(1000, 900000000 / stream.max_message_bytes),
        -- Receives of a single partition take turns. Of several, a receive takes one that is free.
        'or_wait', case when postbus_data.layout_count(layout) = 1 then ' or postbus_data.wait_for_partition(reader.id, chosen)' else '' end,
        -- Groups read levels side by side, by a way of their own.
        'is_plain', case when stream.one_message_per_key then 'false' when has_levels then 'not c.is_group' else 'true' end,
        'reader_of_levels', case when has_levels then E'\n        c.ageing,\n        clock_timestamp() as now_at,' else '' end,
        'data_column', case stream.data_type when 'bytes' then 'bytes' else 'data' end,
        'data_type', case stream.data_type when 'bytes' then 'bytea' else 'text' end,
        -- Redeliveries of urgent messages, by the levels that were in use when this was written.
        'has_urgent_due', coalesce(
            (
                select string_agg(format('postbus_data.has_due(reader.id, reader.epoch, %s)', lane), ' or ')
                from unnest(postbus_data.lanes(stream_id)) as lane
                where lane >= 500000000
            ),
            'false'
        ),
        -- Failed messages of an older layout hold their keys too.
        'no_older_failures', case
            when postbus_data.layout_base(layout) > 0 then format(
                ' and not exists (select from postbus_data.waiting as w where w.consumer_id = reader.id and w.partition < %s)',
                postbus_data.layout_base(layout)
            )
            else ''
        end
    );
    execute postbus_data.render(
        postbus_data.ack_and_receive_template(),
        names || jsonb_build_object(
            'ack_and_receive_from_many', postbus_data.render(postbus_data.ack_and_receive_from_many_template(), names),
            'ack_and_receive_urgent', case when has_levels then postbus_data.render(postbus_data.ack_and_receive_urgent_template(), names) else '' end
        )
    );
end
$$;

create or replace function postbus_data.current_partition(layout bigint, key text, seq bigint)
returns integer
language sql
immutable
as $$
/* The partition of a layout to which a message belongs, whichever partition it was published to. */
    select postbus_data.layout_base(layout)
        + coalesce(postbus.partition_of(key, postbus_data.layout_count(layout)), mod(seq, postbus_data.layout_count(layout))::integer)
$$;

create or replace function postbus_data.fetch_messages(
    stream_id integer,
    partition integer,
    after_seq bigint,
    to_seq bigint,
    max_messages integer
)
returns postbus.delivery[]
language plpgsql
volatile
as $$
/*
The next messages of a partition with after_seq < seq <= to_seq, in order, from all segments that may hold some. Leases nothing:
they have no ack ids.
*/
#variable_conflict use_variable
declare
    claim postbus_data.receive_state;
    segment record;
    batch postbus_data.batch;
    found_here postbus.delivery[];
    messages postbus.delivery[];
begin
    claim.place.partition := partition;
    claim.after_seq := after_seq;
    claim.to_seq := to_seq;
    claim.wanted := max_messages;
    for segment in
        select g.number, g.after_seq
        from postbus_data.segment as g
        where g.stream_id = stream_id
            and (g.sealed_at is null or g.last_seq > after_seq)
            and g.after_seq < to_seq
        order by g.number
    loop
        exit when cardinality(messages) >= max_messages and messages[max_messages].seq <= segment.after_seq;
        execute 'select b.* from postbus_data.claim_' || stream_id || '_' || segment.number || '(null, $1) as b' into batch using claim;
        select array_agg(row(null, 1, m.seq, partition, m.key, m.data, m.bytes, m.headers, m.published_at, 0, null, null, null)::postbus.delivery)
        into found_here
        from unnest(batch.seqs, batch.keys, batch.data, batch.bytes, batch.headers, batch.published_at)
            as m (seq, key, data, bytes, headers, published_at);
        if messages is null then
            messages := found_here;
        elsif found_here is not null then
            messages := array(select m from unnest(messages || found_here) as m order by (m).seq limit max_messages);
        end if;
    end loop;
    return messages;
end
$$;

create or replace function postbus_data.fetch_named(
    stream_id integer,
    data_type text,
    partition integer,
    seqs bigint[],
    attempts integer[],
    token bigint,
    live_only boolean default false
)
returns postbus.delivery[]
language plpgsql
volatile
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
/*
The messages of a partition with the given seqs, as deliveries of a lease with that token, in order of seq. Messages that are
gone are left out; with live_only, also those whose time to live is over or that are not the current version of their key.
*/
declare
    prefix text := lpad(to_hex(token), 16, '0') || '-';
    source text;
    messages postbus.delivery[];
    superseded bigint[];
begin
    select string_agg(
        format(
            'select a.attempt, l.seq, l.partition, l.key, %s, l.headers, l.published_at
            from unnest($1, $2) as a (seq, attempt)
            join postbus_data.log_%s_%s as l on l.partition = $3 and l.seq = a.seq
            where not $5 or l.expires_at is null or l.expires_at > clock_timestamp()',
            case when data_type = 'bytes' then 'null::text as data, l.data as bytes' else 'l.data::text as data, null::bytea as bytes' end,
            g.stream_id,
            g.number
        ),
        ' union all '
    )
    into source
    from postbus_data.segment as g
    where g.stream_id = fetch_named.stream_id
        and (g.sealed_at is null or g.last_seq >= (select min(s) from unnest(seqs) as s))
        and g.after_seq < (select max(s) from unnest(seqs) as s);
    if exists (select from postbus_data.kept as k where k.stream_id = fetch_named.stream_id) then
        source := concat_ws(
            ' union all ',
            source,
            format(
                'select a.attempt, k.seq, k.partition, k.key, k.data, k.bytes, k.headers, k.published_at
                from unnest($1, $2) as a (seq, attempt)
                join postbus_data.kept as k on k.stream_id = %s and k.partition = $3 and k.seq = a.seq
                where not $5 or k.expires_at is null or k.expires_at > clock_timestamp()',
                stream_id
            )
        );
    end if;
    if source is null then
        return null;
    end if;
    execute 'select array_agg(row($4 || m.seq, m.attempt, m.seq, m.partition, m.key, m.data, m.bytes, m.headers, m.published_at, 0, null, null, null)::postbus.delivery
        order by m.seq) from (' || source || ') as m'
    into messages
    using seqs, attempts, partition, prefix, live_only;
    if live_only then
        superseded := postbus_data.superseded(stream_id, messages);
        if superseded <> '{}' then
            messages := nullif(array(select m from unnest(messages) as m where (m).seq <> all (superseded) order by (m).seq), '{}');
        end if;
    end if;
    return messages;
end
$$;

create or replace function postbus_data.first_position(reader postbus_data.consumer, partition integer, read_to_seq bigint)
returns postbus_data.position
language plpgsql
volatile
as $$
/* The position of a partition that has not been read yet. */
declare
    place postbus_data.position;
begin
    place.consumer_id := reader.id;
    place.epoch := reader.epoch;
    place.partition := partition;
    place.read_to_seq := read_to_seq;
    place.horizon := 0;
    place.pending_bound := 0;
    place.segment := 0;
    place.parked_count := 0;
    place.expired_count := 0;
    place.missed_count := 0;
    return place;
end
$$;

create or replace function postbus_data.free_capacity(reader postbus_data.consumer, wanted integer)
returns integer
language plpgsql
volatile
as $$
/*
How many of the wanted messages a small max_ack_pending leaves room for.

Locks    the consumer's count mutex until the transaction ends: otherwise two receives could both count the same room. Waits for
         another receive for up to 100 ms; returns 0 if that does not end by then.
*/
declare
    wait_until timestamptz := clock_timestamp() + interval '100 milliseconds';
begin
    while not pg_try_advisory_xact_lock(postbus_data.consumer_lock_class(reader.id), postbus_data.consumer_lock('count')) loop
        if clock_timestamp() > wait_until then
            return 0;
        end if;
        perform pg_sleep(0.002);
    end loop;
    return least(wanted, reader.max_ack_pending - postbus_data.in_flight(reader.id, reader.epoch, null, null));
end
$$;

create or replace function postbus_data.has_due(consumer_id integer, epoch integer, lane integer default 0)
returns boolean
language sql
volatile
as $$
/* Whether a consumer's redelivery log of a level has messages to deliver. Written so that the planner can inline it. */
    select exists (
        select
        from postbus_data.due as d
        where d.consumer_id = has_due.consumer_id
            and d.epoch = has_due.epoch
            and d.lane = has_due.lane
            and d.n > coalesce(
                (
                    select p.read_to_n
                    from postbus_data.redelivery_position as p
                    where p.consumer_id = has_due.consumer_id
                        and p.epoch = has_due.epoch
                        and p.lane = has_due.lane
                    order by p.read_to_n desc
                    limit 1
                ),
                0
            )
    )
$$;

create or replace function postbus_data.has_more(
    reader postbus_data.consumer,
    partition integer,
    start_seq bigint,
    horizon bigint
)
returns boolean
language plpgsql
volatile
as $$
/*
Whether a partition whose mutex another session holds may have messages for a consumer, judged by what is committed.

Two receives that find nothing hold the mutexes of the partitions that they have looked at, and each would wait for the other's.
Committed data is proof enough that there is nothing: a claim in progress only takes messages away, and everything published up
to the horizon, which an earlier statement has read, is visible.
*/
#variable_conflict use_variable
declare
    place postbus_data.position := postbus_data.position_of(reader, partition);
begin
    return place.parked_from is not null
        or (reader.ordering <> 'none' and exists (select from postbus_data.waiting as w where w.consumer_id = reader.id))
        or postbus_data.next_seqs(reader.stream_id, partition, greatest(place.read_to_seq, start_seq - 1), horizon, 1) is not null;
end
$$;

create or replace function postbus_data.has_saved(consumer_id integer, seqs bigint[])
returns boolean
language sql
stable
as $$
/* Whether any of these messages of a consumer was deferred before. */
    select exists (
        select from postbus_data.saved as s where s.consumer_id = has_saved.consumer_id and s.seq = any (has_saved.seqs)
    )
$$;

create or replace function postbus_data.in_flight(
    consumer_id integer,
    epoch integer,
    partition integer,
    redelivered boolean
)
returns bigint
language sql
volatile
as $$
/*
How many messages of a consumer are leased and not settled. Optionally only those of a partition, or only first deliveries or
only redeliveries; null counts all.
*/
    select coalesce(sum(cardinality(l.seqs) - s.settled_count), 0)
    from postbus_data.lease as l
    cross join lateral (
        select count(*) as settled_count
        from postbus_data.settled as s
        where s.token = l.token
            and s.seq = any (l.seqs)
    ) as s
    where l.consumer_id = in_flight.consumer_id
        and l.epoch = in_flight.epoch
        and (in_flight.partition is null or l.partition = in_flight.partition)
        and (redelivered is null or (l.attempts is not null) = redelivered)
$$;

create or replace function postbus_data.is_behind(reader postbus_data.consumer)
returns boolean
language sql
volatile
as $$
/* Whether publishers write to other partitions than those that a consumer reads. */
    select reader.partition_base
        <> postbus_data.layout_base(pg_sequence_last_value(to_regclass('postbus_data.layout_' || reader.stream_id)))
$$;

create or replace function postbus_data.is_idle(reader postbus_data.consumer, partition integer)
returns boolean
language sql
volatile
as $$
/*
Whether a partition has nothing in flight of any level, in the orders "key" and "partition". A guess: it does not take the partition's mutex.
*/
    select not exists (
        select
        from (
            select p.leases
            from postbus_data.position as p
            where p.consumer_id = reader.id
                and p.epoch = reader.epoch
                and p.partition = mod(is_idle.partition, 100000000)
            order by p.read_to_seq desc
            limit 1
        ) as p
        cross join lateral unnest(p.leases) as t (token)
        join lateral (select from postbus_data.lease as l where l.token = t.token limit 1) as l on true
    )
$$;

create or replace function postbus_data.lease_messages(
    reader postbus_data.consumer,
    claim postbus_data.receive_state,
    seqs bigint[],
    keys text[],
    last_seq bigint
)
returns text
language plpgsql
volatile
as $$
/*
Lease messages of a partition, and move the position to last_seq. Hot: one statement.

Its caller holds the partition's mutex.
Returns  the lease's token in hexadecimal, with which the ack ids of these deliveries begin.
Touches  lease, position (insert; delete of the last position). As advance_position for a level other than the default.
*/
#variable_conflict use_variable
declare
    token bigint := postbus_data.new_token();
    place postbus_data.position := claim.place;
    is_ordered boolean := reader.ordering <> 'none';
    is_default boolean := place.partition < 100000000;
begin
    with last_place as (
        delete from postbus_data.position as p
        where p.consumer_id = place.consumer_id
            and p.epoch = place.epoch
            and p.partition = place.partition
            and p.read_to_seq = place.read_to_seq
    ),
    leased as (
        insert into postbus_data.lease (token, consumer_id, epoch, partition, seqs, keys, received_at, deadline, has_history)
        values (
            token, place.consumer_id, place.epoch, place.partition, seqs, case when is_ordered then keys end, clock_timestamp(), claim.lease_until,
            reader.keep_history is not null
        )
    )
    insert into postbus_data.position (
        consumer_id, epoch, partition, read_to_seq, horizon, pending_bound, segment, leases, parked_from, parked_count, expired_count, missed_count,
        pending_since
    )
    values (
        place.consumer_id, place.epoch, place.partition, last_seq, place.horizon,
        case when is_default then place.pending_bound + cardinality(seqs) else 0 end, place.segment,
        case when is_ordered and is_default then place.leases || token end, place.parked_from, place.parked_count, place.expired_count,
        place.missed_count, case when place.pending_since is not null and is_default then least(place.pending_since, claim.lease_until) end
    );
    if not is_default then
        perform postbus_data.save_slot(
            place, case when is_ordered then place.leases || token end, place.pending_bound + cardinality(seqs),
            case when place.pending_since is not null then least(place.pending_since, claim.lease_until) end
        );
    end if;
    return lpad(to_hex(token), 16, '0');
end
$$;

create or replace function postbus_data.lease_redelivered(
    reader postbus_data.consumer,
    claim postbus_data.receive_state,
    place postbus_data.position,
    origin integer,
    seqs bigint[],
    attempts integer[]
)
returns postbus.delivery[]
language plpgsql
volatile
as $$
/*
In the orders "key" and "partition": lease messages of a partition that had failed or were parked. Its position does not move.

origin   the partition that they were published to: that of the place, or one of an older layout.

Its caller holds the mutex of the place.
Returns  the deliveries; messages that were purged or have expired since are left out.
Touches  lease, position (insert; delete of the last position).
*/
declare
    token bigint := postbus_data.new_token();
    messages postbus.delivery[] := postbus_data.fetch_named(
        reader.stream_id, claim.data_type, origin, seqs, attempts, token, live_only => true
    );
begin
    perform postbus_data.add_dead_letters_without_message(reader, origin, seqs, attempts, messages);
    if messages is not null then
        insert into postbus_data.lease (
            token, consumer_id, epoch, partition, seqs, keys, attempts, received_at, deadline, has_history, has_saved
        )
        select
            token, reader.id, reader.epoch, origin, array_agg(m.seq), array_agg(m.key), array_agg(m.attempt), clock_timestamp(),
            claim.lease_until, reader.keep_history is not null, postbus_data.has_saved(reader.id, seqs)
        from unnest(messages) as m;
        place.leases := place.leases || token;
        place.pending_bound := place.pending_bound + cardinality(messages);
    end if;
    perform postbus_data.advance_position(place, place.read_to_seq);
    return messages;
end
$$;

create or replace function postbus_data.lock_waiting(consumer_id integer, partition integer, seqs bigint[])
returns bigint[]
language plpgsql
volatile
as $$
/*
Lock failed messages of a partition that are to be redelivered, without waiting. A late ack in an open transaction may hold some of
them: then only those before the first such message may be taken, so that they stay in order.

Returns  the seqs that may be taken; null for none. Seqs that are not of failed messages are not locked.
Locks    rows of waiting.
*/
begin
    return (
        with locked as materialized (
            select w.seq
            from postbus_data.waiting as w
            where w.consumer_id = lock_waiting.consumer_id
                and w.partition = lock_waiting.partition
                and w.seq = any (lock_waiting.seqs)
            for update skip locked
        ),
        held as (
            select min(w.seq) as seq
            from postbus_data.waiting as w
            where w.consumer_id = lock_waiting.consumer_id
                and w.partition = lock_waiting.partition
                and w.seq = any (lock_waiting.seqs)
                and w.seq not in (select l.seq from locked as l)
        )
        select array_agg(s.seq order by s.seq)
        from unnest(lock_waiting.seqs) as s (seq)
        cross join held as h
        where h.seq is null or s.seq < h.seq
    );
end
$$;

create or replace function postbus_data.new_token()
returns bigint
language sql
volatile
as $$
/*
A name for a lease that no other lease gets: not one of another session, not one after setseed has made random() repeat itself, and not one after a crash took
leases back, as a number from a sequence would. It need not be secret: peek shows it, and an ack counts for its consumer only.

A random uuid takes 7 µs where this takes 0.5: Postgres asks the kernel for each.
*/
    select timestamp_hash_extended(
        clock_timestamp()::timestamp,
        floor(random() * 9007199254740992)::bigint # (pg_backend_pid()::bigint << 32)
    )
$$;

create or replace function postbus_data.parse_ack_ids(ack_ids text[])
returns table (token bigint, seqs bigint[])
language sql
immutable
as $$
/*
Parse ack ids: for each lease, its token and the seqs of the messages, or null for the whole lease.

An ack id is <token>-<seq>, or <token> alone for the whole lease; a token has 16 hexadecimal digits. In order of the tokens, so
that two callers lock leases in the same order.

Raises  PB400 for anything else.
*/
    select a.token, case when bool_or(a.seq is null) then null else array_agg(a.seq) end
    from (
        select
            ('x' || left(i.id, 16))::bit(64)::bigint as token,
            nullif(substr(i.id, 18), '')::bigint as seq
        from (
            select case when g.id ~ '^[0-9a-f]{16}(-[0-9]{1,18})?$' then g.id else postbus_data.raise_not_an_ack_id(g.id) end as id
            from unnest(ack_ids) as g (id)
        ) as i
    ) as a
    group by a.token
    order by a.token
$$;

create or replace function postbus_data.parse_token(token text)
returns bigint
language sql
immutable
as $$
/* A lease's token from its 16 hexadecimal digits; null when it has others. */
    select case when token ~ '^[0-9a-f]{16}$' then ('x' || token)::bit(64)::bigint end
$$;

create or replace function postbus_data.passes(reader postbus_data.consumer, message postbus.delivery)
returns boolean
language sql
immutable
as $$
/* Whether a message passes a consumer's filter. The functions of segments contain this expression: see create_claim_function. */
    select (reader.filter_key_regex is null or coalesce(message.key ~ reader.filter_key_regex, false))
        and (reader.filter_headers is null or coalesce(message.headers @> reader.filter_headers, false))
        and (reader.filter_headers_not is null or not coalesce(message.headers @> any (reader.filter_headers_not), false))
        and (
            reader.filter_data is null
            or coalesce(jsonb_path_query_first(postbus_data.as_jsonb(message.data), reader.filter_data, '{}', true), 'false') not in ('false', 'null')
        )
$$;

create or replace function postbus_data.position_of(reader postbus_data.consumer, partition integer)
returns postbus_data.position
language plpgsql
volatile
as $$
/* The position of a consumer in a partition. */
#variable_conflict use_variable
declare
    place postbus_data.position;
begin
    place := (
        select p
        from postbus_data.position as p
        where p.consumer_id = reader.id
            and p.epoch = reader.epoch
            and p.partition = partition
        order by p.read_to_seq desc
        limit 1
    );
    if place.read_to_seq is null then
        place := postbus_data.first_position(reader, partition, reader.start_after);
    end if;
    return place;
end
$$;

create or replace function postbus_data.raise_not_an_ack_id(given text)
returns text
language plpgsql
immutable
as $$
/* Raise PB400 for what is not an ack id. */
begin
    raise exception using
        errcode = 'PB400',
        message = format('%s is not an ack id', coalesce(to_json(given)::text, 'null')),
        hint = 'give the ack_id of a delivery, or the token of a range, as it was received';
end
$$;

create or replace function postbus_data.reading_layout(reader postbus_data.consumer)
returns bigint
language sql
volatile
as $$
/*
The partitions that a consumer reads, packed as in the layout register. They are those of the register, unless their number was changed and the consumer
has not come to the new ones yet.
*/
    select (pg_sequence_last_value(to_regclass('postbus_data.layout_' || reader.stream_id)) >> 35 << 35)
        | (reader.partition_base::bigint << 11)
        | mod(
            reader.partition_count
            + case when postbus_data.has_levels(pg_sequence_last_value(to_regclass('postbus_data.layout_' || reader.stream_id))) then 1024 else 0 end,
            2048
        )
$$;

create or replace function postbus_data.receive_with_decisions(
    reader postbus_data.consumer,
    max_messages integer,
    ack_wait interval,
    expected_type text,
    by_position boolean,
    begin_with integer
)
returns table (
    lease text, partition integer, seqs bigint[], attempts integer[], keys text[], data text[], bytes bytea[], headers jsonb[], published_at timestamptz[],
    saved json
)
language plpgsql
volatile
as $$
/*
The slow path of ack_and_receive, for groups and for receives that need decisions about individual messages.

Returns  batches. An attempt that is the last of its message, by the consumer's max_deliver, is negated. For saved, see saved_of: null unless
         messages are redelivered.

Raises  PB409 for a group that is not received from by position, or a consumer that is.
*/
begin
    if not by_position and reader.max_deliver is not null then
        return query
        select
            b.lease, b.partition, b.seqs,
            case
                when b.attempts is not null then array(
                    select case when a.attempt >= reader.max_deliver then -a.attempt else a.attempt end
                    from unnest(b.attempts) with ordinality as a (attempt, place)
                    order by a.place
                )
                when reader.max_deliver = 1 then array_fill(-1, array[cardinality(b.seqs)])
            end,
            b.keys, b.data, b.bytes, b.headers, b.published_at,
            case when b.attempts is not null then postbus_data.saved_of(reader.id, b.seqs) end
        from postbus_data.claim_batches(reader, max_messages, ack_wait, expected_type, begin_with) as b;
        return;
    elsif not by_position then
        return query
        select b.*, case when b.attempts is not null then postbus_data.saved_of(reader.id, b.seqs) end
        from postbus_data.claim_batches(reader, max_messages, ack_wait, expected_type, begin_with) as b;
        return;
    end if;
    perform postbus_data.find_group(reader.stream_name, reader.name);
    return query select b.*, null::json from postbus_data.consume(reader, max_messages, ack_wait, expected_type, begin_with) as b;
end
$$;

create or replace function postbus_data.record_history(held postbus_data.lease, seqs bigint[], outcome text, reason text)
returns void
language plpgsql
volatile
as $$
/*
Record the outcome of messages of a lease: one row for all that were acked, one for each that failed. A failure of a message's
last delivery is recorded as dead.

Touches  history (insert).
*/
begin
    if outcome = 'acked' then
        insert into postbus_data.history (consumer_id, partition, first_seq, seqs, attempts, received_at, outcome)
        values (
            held.consumer_id, held.partition, (select min(m.seq) from unnest(seqs) as m (seq)), seqs,
            case
                when held.attempts is not null then array(
                    select h.attempt
                    from unnest(seqs) with ordinality as m (seq, place)
                    join unnest(held.seqs, held.attempts) as h (seq, attempt) on h.seq = m.seq
                    order by m.place
                )
            end,
            held.received_at, outcome
        );
        return;
    end if;
    insert into postbus_data.history (consumer_id, partition, first_seq, seqs, attempts, received_at, outcome, reason)
    select
        held.consumer_id, held.partition, m.seq, array[m.seq], array[m.attempt], held.received_at,
        case when m.attempt >= c.max_deliver then 'dead' else record_history.outcome end,
        record_history.reason
    from (
        select h.seq, coalesce(h.attempt, 1) as attempt
        from unnest(held.seqs, held.attempts) as h (seq, attempt)
        where h.seq in (select unnest(seqs))
    ) as m
    join postbus_data.consumer as c on c.id = held.consumer_id;
end
$$;

create or replace function postbus_data.redelivery_position_of(reader postbus_data.consumer, lane integer default 0)
returns postbus_data.redelivery_position
language plpgsql
volatile
as $$
/* The position of a consumer in its redelivery log of a level; 0 if it has not begun. */
declare
    place postbus_data.redelivery_position;
begin
    select p.* into place
    from postbus_data.redelivery_position as p
    where p.consumer_id = reader.id
        and p.epoch = reader.epoch
        and p.lane = redelivery_position_of.lane
    order by p.read_to_n desc
    limit 1;
    if place.read_to_n is null then
        place := row(reader.id, reader.epoch, 0, 0, lane);
    end if;
    return place;
end
$$;

create or replace function postbus_data.reset_pending_since(reader postbus_data.consumer)
returns void
language plpgsql
volatile
as $$
/*
Make the next count of messages in flight look at all leases, because some will end earlier than positions say.

Touches  position (update).
Locks    the mutex of each partition, in order, until the transaction ends. Receives only try for them, so no cycle of waits can
         form.
*/
begin
    for place in reader.partition_base .. reader.partition_base + reader.partition_count - 1 loop
        perform pg_advisory_xact_lock(postbus_data.consumer_lock_class(reader.id), place);
        update postbus_data.position as p
        set pending_since = null
        where p.consumer_id = reader.id
            and p.epoch = reader.epoch
            and p.partition = place
            and p.pending_since is not null;
    end loop;
end
$$;

create or replace function postbus_data.run_periodic_work(reader postbus_data.consumer)
returns boolean
language plpgsql
volatile
as $$
/*
The periodic work of a receive: record that the consumer is in use, and sweep.

Returns  whether the sweep made messages available, which claim_batches then leases.
Touches  as note_use and sweep_consumer.
*/
begin
    if reader.expire_after is not null then
        perform postbus_data.note_use(reader);
    end if;
    return not reader.is_group and postbus_data.sweep_now_and_then(reader);
end
$$;

create or replace function postbus_data.saved_of(consumer_id integer, seqs bigint[])
returns json
language sql
volatile
as $$
/*
What was saved with these messages of a consumer: an array in their order, with an object of deferrals, state and bytes (in base64) for
each that was deferred, and null for the others. Null if none was.

Volatile, to see what was saved by deferrals that committed after the statement of the receive had begun.
*/
    select case
        when count(s.seq) > 0 then json_agg(
            case
                when s.seq is not null then json_build_object(
                    'deferrals', s.deferrals, 'state', s.state, 'bytes', translate(encode(s.bytes, 'base64'), E'\n', '')
                )
            end
            order by m.place
        )
    end
    from unnest(saved_of.seqs) with ordinality as m (seq, place)
    left join postbus_data.saved as s on s.consumer_id = saved_of.consumer_id and s.seq = m.seq
$$;

create or replace function postbus_data.settle_expired(
    consumer_id integer,
    epoch integer,
    token bigint,
    seqs bigint[]
)
returns table (partition integer, seq bigint, attempt integer, key text)
language plpgsql
volatile
as $$
/*
Settle messages whose lease has expired and was swept, as long as nobody else has received them: they wait for redelivery, or are
dead letters, and carry the token of that lease until they are given out again.

seqs  which messages; null for all of that lease.

Returns  the messages that this call settled.
Touches  waiting, due, dead_letter (delete).
Locks    the rows; the mutex of the redelivery log, until the transaction ends, when a message is in it. A receive does not
         wait: in order "key" and "partition" it takes only what lies before such a message, and in order "none" passes over the log.

The rows are found by the token alone: with few rows, the planner rates an index on consumer_id or consumer_id + 0 as good.
*/
#variable_conflict use_column
begin
    -- In the order in which a sweep moves them, so that each is found in one or the other.
    return query
    delete from postbus_data.waiting as w
    where w.token = settle_expired.token
        and w.consumer_id - 0 = settle_expired.consumer_id
        and (settle_expired.seqs is null or w.seq = any (settle_expired.seqs))
    returning w.partition, w.seq, w.attempts, w.key;
    if exists (select from postbus_data.due as d where d.token = settle_expired.token) then
        perform pg_advisory_xact_lock(
            postbus_data.consumer_lock_class(settle_expired.consumer_id), postbus_data.consumer_lock('redeliver')
        );
        return query
        delete from postbus_data.due as d
        where d.token = settle_expired.token
            and d.consumer_id - 0 = settle_expired.consumer_id
            and d.epoch = settle_expired.epoch
            and (settle_expired.seqs is null or d.seq = any (settle_expired.seqs))
        returning d.partition, d.seq, d.attempts, null::text;
    end if;
    return query
    delete from postbus_data.dead_letter as d
    where d.token = settle_expired.token
        and d.consumer_id - 0 = settle_expired.consumer_id
        and d.epoch = settle_expired.epoch
        and (settle_expired.seqs is null or d.seq = any (settle_expired.seqs))
    returning d.partition, d.seq, d.attempts, d.key;
end
$$;

create or replace function postbus_data.settle_messages(
    consumer_id integer,
    epoch integer,
    token bigint,
    seqs bigint[],
    outcome text,
    reason text default null
)
returns table (partition integer, seq bigint, attempt integer, key text)
language plpgsql
volatile
as $$
/*
Settle messages of a lease one by one. Of several callers, only the one that settles a message gets it back. Messages of a lease that
has expired can still be acked, made dead letters or deferred until they are given out again, see settle_expired.

seqs     which messages; null for all.
outcome  acked, failed or dead, which is recorded if the consumer keeps a history; deferred or null, which is not.
Touches  settled, history (insert), saved (delete) when acked, and lease, settled (delete) when nothing of the lease is left.
Locks    the lease, against expiry only: while this transaction is open, others may settle other messages of it and extend it.
         Two callers that settle the same message meet in the primary key of settled; the second waits, and gets nothing. The
         caller that settles the last message locks the lease exclusively.

A lease may have 10,000 messages, so they are looked up in sets, which are hashed, and not in arrays.
*/
#variable_conflict use_column
declare
    held postbus_data.lease;
    new_seqs bigint[];
    found_count bigint;
    left_count bigint;
    is_whole boolean := false;
    message record;
begin
    -- A heartbeat may have moved messages to another piece after the first look began. A second look finds them.
    for look in 1 .. 2 loop
        found_count := 0;
        left_count := 0;
        for held in
            select l.*
            from postbus_data.lease as l
            where l.token = settle_messages.token
                and l.consumer_id + 0 = settle_messages.consumer_id
                and l.epoch = settle_messages.epoch
            order by l.piece
            for key share
        loop
            with inserted as (
                insert into postbus_data.settled as s (token, seq)
                select settle_messages.token, h.seq
                from unnest(held.seqs) as h (seq)
                where settle_messages.seqs is null or h.seq in (select unnest(settle_messages.seqs))
                on conflict do nothing
                returning s.seq
            )
            select array_agg(i.seq order by i.seq) into new_seqs from inserted as i;
            return query
            select held.partition, h.seq, coalesce(h.attempt, 1), h.key
            from unnest(held.seqs, held.attempts, held.keys) as h (seq, attempt, key)
            where h.seq in (select unnest(new_seqs))
            order by h.seq;
            if held.has_history and outcome <> 'deferred' and new_seqs is not null then
                perform postbus_data.record_history(held, new_seqs, outcome, reason);
            end if;
            if held.has_saved and outcome = 'acked' then
                delete from postbus_data.saved as s where s.consumer_id = settle_messages.consumer_id and s.seq = any (new_seqs);
            end if;
            is_whole := not held.is_split and held.piece = 0;
            found_count := found_count + (select count(*) from unnest(held.seqs) as h (seq) where h.seq in (select unnest(settle_messages.seqs)));
            left_count := left_count + cardinality(held.seqs) - (
                select count(*) from postbus_data.settled as s where s.token = settle_messages.token and s.seq = any (held.seqs)
            );
        end loop;
        exit when found_count = cardinality(settle_messages.seqs);
    end loop;

    if left_count = 0 then
        -- Wait for a heartbeat that is splitting it; the second look finds the messages it moves.
        perform from postbus_data.lease as l where l.token = settle_messages.token and l.consumer_id + 0 = settle_messages.consumer_id for update;
        delete from postbus_data.lease as l
        where l.token = settle_messages.token
            and l.consumer_id + 0 = settle_messages.consumer_id
            -- By number: asked for each message whether it is settled, Postgres would compare all with all.
            and not exists (
                select
                from postbus_data.lease as other
                where other.token = settle_messages.token
                    and cardinality(other.seqs) > (
                        select count(*) from postbus_data.settled as s where s.token = other.token and s.seq = any (other.seqs)
                    )
            );
        if found then
            delete from postbus_data.settled as s where s.token = settle_messages.token;
        end if;
    end if;
    if outcome in ('acked', 'dead', 'deferred') and (case when settle_messages.seqs is null then is_whole else found_count = cardinality(settle_messages.seqs) end) is not true then
        for message in select e.* from postbus_data.settle_expired(
            settle_messages.consumer_id, settle_messages.epoch, settle_messages.token, settle_messages.seqs
        ) as e loop
            partition := message.partition;
            seq := message.seq;
            attempt := message.attempt;
            key := message.key;
            return next;
            if outcome = 'acked' then
                delete from postbus_data.saved as s where s.consumer_id = settle_messages.consumer_id and s.seq = message.seq;
            end if;
            if outcome <> 'deferred' then
                perform postbus_data.correct_history(settle_messages.consumer_id, message.seq, message.attempt, outcome, reason);
            end if;
        end loop;
    end if;
end
$$;

create or replace function postbus_data.split_lease(held postbus_data.lease, chosen bigint[], lease_until timestamptz)
returns void
language plpgsql
volatile
as $$
/* Move some messages of a lease to a separate piece with another deadline. Its caller has locked the lease. */
begin
    insert into postbus_data.lease (token, piece, consumer_id, epoch, partition, seqs, keys, attempts, received_at, deadline, has_history, has_saved)
    select
        held.token,
        (select max(l.piece) + 1 from postbus_data.lease as l where l.token = held.token),
        held.consumer_id, held.epoch, held.partition,
        array_agg(h.seq order by h.place),
        case when held.keys is not null then array_agg(h.key order by h.place) end,
        case when held.attempts is not null then array_agg(h.attempt order by h.place) end,
        held.received_at, lease_until, held.has_history, held.has_saved
    from unnest(held.seqs, held.keys, held.attempts) with ordinality as h (seq, key, attempt, place)
    where h.seq = any (chosen);
    update postbus_data.lease as l
    set seqs = array(select h.seq from unnest(held.seqs) with ordinality as h (seq, place) where h.seq <> all (chosen) order by h.place),
        keys = case
            when held.keys is not null then array(
                select h.key
                from unnest(held.seqs, held.keys) with ordinality as h (seq, key, place)
                where h.seq <> all (chosen)
                order by h.place
            )
        end,
        attempts = case
            when held.attempts is not null then array(
                select h.attempt
                from unnest(held.seqs, held.attempts) with ordinality as h (seq, attempt, place)
                where h.seq <> all (chosen)
                order by h.place
            )
        end
    where l.token = held.token
        and l.piece = held.piece;
    update postbus_data.lease as l set is_split = true where l.token = held.token and l.piece = 0;
end
$$;

create or replace function postbus_data.stream_horizons(
    stream_ids bigint[],
    seen bigint[],
    caller postbus.caller default postbus.current_caller()
)
returns setof bigint
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
The horizons of several streams, in their order, for receivers that wait. Reads one sequence for each stream, and looks for open
publishers only where seqs were drawn since.

seen     up to which seq the receivers of each stream have been told.
Returns  a seq for each stream, at least the one seen; null for a stream that was dropped, or that the caller may not consume.
*/
declare
    last_seq bigint;
begin
    for place in 1 .. coalesce(cardinality(stream_ids), 0) loop
        last_seq := case
            when postbus_data.has_right(caller, stream_ids[place]::integer, 'consume')
            then pg_sequence_last_value(to_regclass('postbus_data.seq_' || stream_ids[place]))
        end;
        if last_seq > seen[place] then
            last_seq := greatest(seen[place], postbus_data.horizon_of(stream_ids[place]::integer));
        end if;
        return next last_seq;
    end loop;
end
$$;

create or replace function postbus_data.wait_for_partition(consumer_id integer, partition integer)
returns boolean
language plpgsql
volatile
as $$
/*
Wait for the mutex of a partition that another session holds, for up to 100 ms: where there is only one partition, receives take turns. A session
that waits for a lock wakes up as soon as it is free, and in the order in which sessions came.

Returns  whether this transaction holds it now.
*/
declare
    former text := current_setting('lock_timeout');
begin
    perform set_config('lock_timeout', '100ms', true);
    perform pg_advisory_xact_lock(postbus_data.consumer_lock_class(consumer_id), partition);
    perform set_config('lock_timeout', former, true);
    return true;
exception when lock_not_available then
    return false;
end
$$;

create or replace function postbus_data.waiter(
    stream text,
    consumer text,
    caller postbus.caller default postbus.current_caller(),
    out consumer_id integer,
    out stream_id integer
)
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
/* The ids with which a waiting client asks stream_horizons and consumers_to_wake about a consumer. Raises PB403, PB404. */
begin
    select c.id, c.stream_id into consumer_id, stream_id from postbus_data.permitted_consumer(caller, stream, consumer) as c;
end
$$;

create or replace function postbus_data.write_position(place postbus_data.position, to_seq bigint)
returns void
language plpgsql
volatile
as $$
/*
Write the position of a partition as it is, moved to a seq up to which nothing is left to lease.

Its caller holds the partition's mutex.
Touches  position (insert; delete of the last position).
*/
begin
    delete from postbus_data.position as p
    where p.consumer_id = place.consumer_id
        and p.epoch = place.epoch
        and p.partition = place.partition
        and p.read_to_seq = place.read_to_seq;
    place.read_to_seq := to_seq;
    insert into postbus_data.position select place.*;
end
$$;

create or replace function postbus.nack(
    stream text,
    consumer text,
    ack_ids text[],
    delay interval default null,
    reason text default null,
    untried boolean default false,
    caller postbus.caller default postbus.current_caller()
)
returns integer
language plpgsql
volatile
security definer
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
set search_path = pg_catalog, pg_temp
as $$
/*
Nack deliveries: they have failed, and their messages are redelivered or, after max_deliver, become dead letters.

In order "key", later messages of the same key in the same lease are returned with them and are redelivered after them.

delay    how long each message waits first; null means the consumer's backoff.
reason   why; kept with the message.
untried  nobody has worked on the messages: the delivery does not count as an attempt, and without a delay they are available at
         once.

Returns  how many this call returned. A delivery that was settled before is not counted, nor one whose lease has expired and was swept: its
         message waits for redelivery already.
Raises   PB400 for what is not an ack id or a delay not between 0 and 30 days, PB403 without the right to consume, PB404 for an unknown stream or consumer,
         PB412 outside READ COMMITTED.
Touches  settled, waiting, dead_letter (insert), lease (delete); history (insert) when the consumer keeps one.
Locks    the leases, in order of their tokens.
*/
declare
    reader postbus_data.consumer := postbus_data.permitted_consumer(caller, stream, consumer);
    named record;
    message record;
    failed integer := 0;
begin
    perform postbus_data.check_isolation();
    if (delay between interval '0' and interval '30 days') is false then
        raise exception using errcode = 'PB400', message = format('delay = %s is not between 0 and 30 days', delay);
    end if;
    for named in select p.token, p.seqs from postbus_data.parse_ack_ids(ack_ids) as p loop
        for message in select s.* from postbus_data.settle_messages(
            reader.id, reader.epoch, named.token, named.seqs,
            case when not untried then 'failed' end, coalesce(reason, 'nacked')
        ) as s loop
            perform postbus_data.schedule_retry(
                reader, message.partition, message.seq, message.key,
                case when untried then message.attempt - 1 else message.attempt end,
                case when untried then coalesce(delay, interval '0') else delay end,
                coalesce(reason, 'nacked')
            );
            failed := failed + 1;
        end loop;
        if reader.ordering = 'key' and named.seqs is not null then
            perform postbus_data.return_later_messages_of_key(reader, named.token, named.seqs);
        end if;
    end loop;
    return failed;
end
$$;

create or replace function postbus.nack(
    stream text,
    consumer text,
    ack_id text,
    delay interval default null,
    reason text default null,
    untried boolean default false,
    caller postbus.caller default postbus.current_caller()
)
returns integer
language sql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Nack one delivery. All else is as in the form that takes an array.

ack_id  an ack id; also the text of an array of them, '{…}', since an untyped literal chooses this form.

Returns, raises, touches, locks  as nack of an array does.
*/
    select postbus.nack(stream, consumer, postbus_data.as_ack_ids(ack_id), delay, reason, untried, caller)
$$;

create or replace function postbus.receive(
    stream text,
    consumer text,
    max_messages integer default 1,
    ack_wait interval default null,
    expected_type text default null,
    caller postbus.caller default postbus.current_caller()
)
returns setof postbus.delivery
language sql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Lease the next messages of a consumer. No other worker gets them until they are nacked or the lease expires; an ack finishes them.

max_messages   1 to 10,000, in order within each partition. All are of one priority: the highest that has some, unless the consumer has ageing.
ack_wait       how long they are leased; null means the consumer's setting.
expected_type  raise PB409 if the stream has another data type; null accepts any.

Returns  no rows when nothing is available, or when other open transactions hold all partitions that have something: it waits a tenth of
         a second for them. It first sweeps expired leases and due retries. With a filter, no rows may also mean that none of the next 65,536 messages passed; the next
         receive continues after them.
Raises   PB400 for an argument out of range, PB403 without the right to consume, PB404 for an unknown stream or consumer, PB409
         for a group or another data type, PB412 outside READ COMMITTED, PB503 on a standby.
Touches  lease, position (insert); the consumer's other tables when it sweeps.
Locks    the mutex of each partition it takes from, until the transaction ends. Keep it short: other receives skip these
         partitions.
*/
    select
        s.lease || '-' || m.seq, coalesce(abs(m.attempt), 1), m.seq, s.partition, m.key, m.data, m.bytes, m.headers, m.published_at,
        coalesce((s.saved -> (m.place - 1)::integer ->> 'deferrals')::integer, 0),
        nullif((s.saved -> (m.place - 1)::integer -> 'state')::text, 'null'),
        decode(s.saved -> (m.place - 1)::integer ->> 'bytes', 'base64'),
        postbus.priority_of(s.partition)
    from postbus_data.ack_and_receive_in_any_session(stream, consumer, max_messages, ack_wait, expected_type, null, false, caller) as s
    cross join lateral unnest(s.seqs, s.attempts, s.keys, s.data, s.bytes, s.headers, s.published_at)
        with ordinality as m (seq, attempt, key, data, bytes, headers, published_at, place)
$$;

create or replace function postbus.terminate(
    stream text,
    consumer text,
    ack_ids text[],
    reason text default null,
    caller postbus.caller default postbus.current_caller()
)
returns integer
language plpgsql
volatile
security definer
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
set search_path = pg_catalog, pg_temp
as $$
/*
Make deliveries dead letters at once, whatever max_deliver says.

Returns  how many this call buried; see ack for what is counted, also of leases that have expired.
Raises   PB400 for what is not an ack id, PB403 without the right to consume, PB404 for an unknown stream or consumer, PB412 outside READ COMMITTED.
Touches  settled, dead_letter (insert), lease (delete); history (insert) when the consumer keeps one.
Locks    the leases, in order of their tokens.
*/
declare
    reader postbus_data.consumer := postbus_data.permitted_consumer(caller, stream, consumer);
    named record;
    message record;
    buried integer := 0;
begin
    perform postbus_data.check_isolation();
    for named in select p.token, p.seqs from postbus_data.parse_ack_ids(ack_ids) as p loop
        for message in select s.* from postbus_data.settle_messages(
            reader.id, reader.epoch, named.token, named.seqs, 'dead', coalesce(reason, 'terminated')
        ) as s loop
            perform postbus_data.add_dead_letter(
                reader, message.partition, message.seq, message.attempt, coalesce(reason, 'terminated')
            );
            buried := buried + 1;
        end loop;
        if reader.ordering = 'key' and reader.on_dead = 'hold' and named.seqs is not null then
            perform postbus_data.return_later_messages_of_key(reader, named.token, named.seqs);
        end if;
    end loop;
    return buried;
end
$$;

create or replace function postbus.terminate(
    stream text,
    consumer text,
    ack_id text,
    reason text default null,
    caller postbus.caller default postbus.current_caller()
)
returns integer
language sql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Make one delivery a dead letter at once. All else is as in the form that takes an array.

ack_id  an ack id; also the text of an array of them, '{…}', since an untyped literal chooses this form.

Returns, raises, touches, locks  as terminate of an array does.
*/
    select postbus.terminate(stream, consumer, postbus_data.as_ack_ids(ack_id), reason, caller)
$$;

create or replace function postbus.claim(
    stream text,
    "group" text,
    max_messages integer default 100,
    lease interval default null,
    worker text default null,
    caller postbus.caller default postbus.current_caller()
)
returns setof postbus.claimed
language plpgsql
volatile
security definer
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
set search_path = pg_catalog, pg_temp
as $$
/*
Claim the next messages of a group: ranges of partitions, together at most max_messages messages, to read with fetch.

lease    null: the group moves on at once, and a range whose worker dies is lost (at most once). Otherwise a range that is not
         committed within the lease is claimed again (at least once), and nobody gets more of its partition until then.
worker   only partitions assigned to this worker; see join_group.

Returns  the claimed ranges; no rows when nothing is available. The first partition is chosen at random, so that none starves.
Raises   PB400 for an argument out of range, PB403 without the right to consume, PB404 for an unknown stream or group, PB409 for a
         consumer that is not a group, PB412 outside READ COMMITTED, PB503 on a standby.
Touches  position, lease (insert, delete).
Locks    the mutex of each partition it claims from, until the transaction ends; partitions that another claim has locked are
         skipped.
*/
begin
    return query
    select c.*
    from postbus_data.claim_ranges(postbus_data.permitted_group(caller, stream, "group"), max_messages, lease, worker, null) as c;
end
$$;

create or replace function postbus.commit(
    stream text,
    "group" text,
    tokens text[],
    to_seq bigint default null,
    caller postbus.caller default postbus.current_caller()
)
returns integer
language plpgsql
volatile
security definer
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
set search_path = pg_catalog, pg_temp
as $$
/*
Finish ranges that were claimed with a lease, in the caller's transaction: each of them as a whole, or only up to a seq.

Returns  how many ranges counted. A range whose lease expired and was claimed again is not counted: a late commit moves nothing
         back.
Raises   PB400 for what is not a token, PB403 without the right to consume, PB404 for an unknown stream or group, PB409 for a consumer
         that is not a group, PB412 outside READ COMMITTED.
Touches  lease (delete, or update for part of a range).
*/
#variable_conflict use_variable
declare
    reader postbus_data.consumer := postbus_data.permitted_group(caller, stream, "group");
    finished integer := 0;
    changed integer;
    named text;
begin
    perform postbus_data.check_isolation();
    foreach named in array (select coalesce(array_agg(t order by t), '{}') from unnest(tokens) as t) loop
        if to_seq is not null then
            update postbus_data.lease as l
            set seqs = array(select s from unnest(l.seqs) as s where s > to_seq order by s),
                attempts = null
            where l.token = postbus_data.parse_token(named)
                and l.consumer_id + 0 = reader.id
                and l.epoch = reader.epoch
                and l.seqs[cardinality(l.seqs)] > to_seq;
            get diagnostics changed = row_count;
            finished := finished + changed;
            continue when changed > 0;
        end if;
        delete from postbus_data.lease as l
        where l.token = postbus_data.parse_token(named)
            and l.consumer_id + 0 = reader.id
            and l.epoch = reader.epoch;
        get diagnostics changed = row_count;
        finished := finished + changed;
    end loop;
    if finished < cardinality(tokens) then
        -- Perhaps some are no tokens at all.
        perform count(*) from postbus_data.parse_ack_ids(tokens);
    end if;
    return finished;
end
$$;

create or replace function postbus.create_group(
    stream text,
    "group" text,
    keep_unread boolean default false,
    expire_after interval default null,
    "start" text default null,
    from_seq bigint default null,
    from_time timestamptz default null,
    exist_ok boolean default false
)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Create a group: a consumer that is read by position, with claim, fetch and commit, instead of by acks. See create_consumer for its
settings.

A group gets every message of the log, including messages whose time to live is over and, in a stream with one message per key,
versions that were replaced.

Raises   PB400 for an invalid name or setting, PB404 for an unknown stream, PB409 when a group or consumer of that name exists
         (with exist_ok: a consumer, or a group with other settings).
         With start => 'latest', PB412 outside READ COMMITTED and PB503 on a standby.
Touches  consumer (insert).
*/
declare
    settings postbus_data.consumer := jsonb_populate_record(null::postbus_data.consumer, postbus_data.consumer_defaults());
begin
    settings.stream_name := stream;
    settings.name := "group";
    settings.is_group := true;
    settings.ordering := 'partition';
    settings.keep_unread := keep_unread;
    settings.expire_after := expire_after;
    perform postbus_data.add_consumer(settings, "start", from_seq, from_time, exist_ok);
end
$$;

create or replace function postbus.fetch(
    stream text,
    partition integer,
    from_seq bigint,
    to_seq bigint,
    expected_type text default null,
    caller postbus.caller default postbus.current_caller()
)
returns setof postbus.message
language plpgsql
volatile
security definer
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
set search_path = pg_catalog, pg_temp
as $$
/*
The messages of a claimed range, in order. Messages removed from the stream since then are left out.

Raises   PB403 without the right to consume or read, PB404 for an unknown stream, PB409 for another data type.
*/
#variable_conflict use_variable
declare
    source postbus_data.stream;
begin
    select s.* into source from postbus_data.stream as s where s.id = postbus_data.permitted_stream(caller, stream, 'consume', 'read');
    if expected_type <> source.data_type then
        raise exception using errcode = 'PB409', message = format('stream "%s" holds %s, not %s', stream, source.data_type, expected_type);
    end if;
    return query
    select m.seq, m.partition, m.key, m.data, m.bytes, m.headers, m.published_at, null::text, postbus.priority_of(m.partition)
    from unnest(
        postbus_data.fetch_messages(source.id, partition, greatest(from_seq, source.start_seq) - 1, to_seq, 10000)
    ) as m
    order by m.seq;
end
$$;

create or replace function postbus_data.claim_range(
    reader postbus_data.consumer,
    partition integer,
    start_seq bigint,
    partition_count integer,
    wanted integer,
    lease interval
)
returns postbus.claimed
language plpgsql
volatile
as $$
/*
Claim the next range of a partition, or one whose lease has expired. message_count is 0 when there is none.

Its caller holds the partition's mutex. Mutex, horizon and rows are separate statements, each with a younger snapshot than the
one before.
Touches  position, lease (insert, delete).
*/
#variable_conflict use_variable
declare
    claimed postbus.claimed;
    place postbus_data.position := postbus_data.position_of(reader, partition);
    held postbus_data.lease;
    seqs bigint[];
    token bigint;
    attempt integer := 1;
    newest integer;
    last_seq bigint;
begin
    claimed.partition := partition;
    claimed.message_count := 0;
    if place.leases is not null then
        select l.* into held from postbus_data.lease as l where l.token = place.leases[1] and l.piece = 0;
        if held.deadline > clock_timestamp() then
            return claimed;
        end if;
    end if;
    if held.token is not null then
        -- A session that is committing or extending it may have committed others before, and be waiting for one that this
        -- transaction holds. So never wait for it.
        select l.* into held from postbus_data.lease as l where l.token = held.token and l.piece = 0 for update skip locked;
        if held.token is null or held.deadline > clock_timestamp() then
            return claimed;
        end if;
    end if;

    if held.token is not null then
        seqs := held.seqs;
        attempt := coalesce(held.attempts[1], 1) + 1;
        delete from postbus_data.lease as l where l.token = held.token;
    else
        if place.horizon - place.read_to_seq < wanted * partition_count then
            place.horizon := postbus_data.horizon_of(reader.stream_id);
        end if;
        if place.read_to_seq < start_seq - 1 then
            place.missed_count := place.missed_count + postbus_data.missed_between(
                reader.stream_id, partition, place.read_to_seq, start_seq, partition_count
            );
        end if;
        seqs := postbus_data.next_seqs(reader.stream_id, partition, greatest(place.read_to_seq, start_seq - 1), place.horizon, wanted);
        last_seq := coalesce(seqs[cardinality(seqs)], place.horizon);
        -- Read after the horizon: everything above the claimed range is in this segment, unless an older one has more.
        newest := postbus_data.layout_segment(pg_sequence_last_value(to_regclass('postbus_data.layout_' || reader.stream_id)));
        if place.segment <> newest and not exists (
            select
            from postbus_data.segment as g
            where g.stream_id = reader.stream_id
                and g.number < newest
                and (g.last_seq is null or g.last_seq > last_seq)
        ) then
            place.segment := newest;
        end if;
        if seqs is null then
            if last_seq > place.read_to_seq and (place.read_to_seq = reader.start_after or last_seq - place.read_to_seq >= wanted * partition_count) then
                -- So that it does not look new, or full, the next time.
                place.leases := null;
                perform postbus_data.write_position(place, last_seq);
            end if;
            return claimed;
        end if;
    end if;

    place.leases := null;
    if lease is not null then
        token := postbus_data.new_token();
        claimed.token := lpad(to_hex(token), 16, '0');
        claimed.deadline := clock_timestamp() + lease;
        place.leases := array[token];
        insert into postbus_data.lease (token, consumer_id, epoch, partition, seqs, attempts, received_at, deadline)
        values (
            token, reader.id, reader.epoch, partition, seqs, case when attempt > 1 then array_fill(attempt, array[cardinality(seqs)]) end,
            clock_timestamp(), claimed.deadline
        );
    end if;
    perform postbus_data.write_position(place, greatest(place.read_to_seq, seqs[cardinality(seqs)]));
    claimed.from_seq := seqs[1];
    claimed.to_seq := seqs[cardinality(seqs)];
    claimed.message_count := cardinality(seqs);
    return claimed;
end
$$;

create or replace function postbus_data.claim_ranges(
    reader postbus_data.consumer,
    max_messages integer,
    lease interval,
    worker text,
    begin_with integer
)
returns setof postbus.claimed
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
/*
Claim the next messages of a group, as postbus.claim does.

begin_with  the partition to look at first; null for a random one, so that none starves.
*/
#variable_conflict use_variable
declare
    partition_base integer := reader.partition_base;
    partition_count integer := reader.partition_count;
    -- Levels are partitions like others: a worker that reads a partition reads it in all levels, in turn.
    lanes integer[] := case
        when postbus_data.has_levels(pg_sequence_last_value(to_regclass('postbus_data.layout_' || reader.stream_id))) then postbus_data.lanes(reader.stream_id)
        else '{0}'
    end;
    first_lane integer := floor(random() * cardinality(lanes));
    start_seq bigint := (select s.start_seq from postbus_data.stream as s where s.id = reader.stream_id);
    first integer := case
        when begin_with - partition_base between 0 and partition_count - 1 then begin_with - partition_base
        else floor(random() * partition_count)
    end;
    partition integer;
    remaining integer := max_messages;
    claimed postbus.claimed;
    owned integer[];
    -- The partitions that other sessions hold. In later rounds, only these are looked at; null means all.
    busy_ones integer[];
    awaited integer[];
    horizon bigint;
    wait_until timestamptz := clock_timestamp() + interval '100 milliseconds';
begin
    perform postbus_data.check_isolation();
    if (max_messages between 1 and 10000) is not true or (lease between interval '1 millisecond' and interval '7 days') is false then
        raise exception using
            errcode = 'PB400',
            message = format('max_messages = %s or lease = %s is not allowed', coalesce(max_messages::text, 'null'), lease),
            hint = 'max_messages is between 1 and 10000, a lease between 1 millisecond and 7 days';
    end if;
    if reader.expire_after is not null then
        perform postbus_data.note_use(reader);
    end if;
    if worker is not null then
        owned := postbus_data.owned_partitions(reader.id, worker);
    end if;
    if reader.paused then
        return;
    end if;
    loop
        busy_ones := '{}';
        for step in 0 .. partition_count * cardinality(lanes) - 1 loop
            exit when remaining <= 0;
            partition := lanes[1 + mod(first_lane + step / partition_count, cardinality(lanes))] + partition_base + mod(first + step, partition_count);
            continue when not mod(partition, 100000000) = any (owned) or not partition = any (awaited);
            if not pg_try_advisory_xact_lock(postbus_data.consumer_lock_class(reader.id), partition) then
                busy_ones := busy_ones || partition;
                continue;
            end if;
            claimed := postbus_data.claim_range(reader, partition, start_seq, partition_count, remaining, lease);
            if claimed.message_count > 0 then
                remaining := remaining - claimed.message_count;
                return next claimed;
            end if;
        end loop;
        exit when remaining < max_messages;
        if busy_ones <> '{}' and not postbus_data.is_behind(reader) then
            horizon := postbus_data.horizon_of(reader.stream_id);
            busy_ones := array(select p from unnest(busy_ones) as p where postbus_data.has_more(reader, p, start_seq, horizon));
        end if;
        if busy_ones <> '{}' then
            exit when clock_timestamp() > wait_until
                or (postbus_data.is_behind(reader) and not pg_try_advisory_xact_lock(postbus_data.consumer_lock_class(reader.id), postbus_data.consumer_lock('change layout')));
            awaited := busy_ones;
            perform pg_sleep(0.0005);
        else
            awaited := null;
            exit when not postbus_data.is_behind(reader);
            reader := postbus_data.change_layout(reader);
            exit when partition_base = reader.partition_base;
            partition_base := reader.partition_base;
            partition_count := reader.partition_count;
            first := floor(random() * partition_count);
        end if;
    end loop;
end
$$;

create or replace function postbus_data.consume(
    reader postbus_data.consumer,
    max_messages integer,
    lease interval,
    expected_type text,
    begin_with integer
)
returns setof postbus_data.batch
language plpgsql
volatile
as $$
/*
Claim the next messages of a group and fetch them, in one call: the slow path of a stream's ack_and_receive_<id>. See
claim_ranges.

lease  null: without a lease.
*/
declare
    claimed postbus.claimed;
    messages postbus.delivery[];
    data_type text := (select s.data_type from postbus_data.stream as s where s.id = reader.stream_id);
begin
    if expected_type <> data_type then
        raise exception using
            errcode = 'PB409',
            message = format('stream "%s" holds %s, not %s', reader.stream_name, data_type, expected_type);
    end if;
    for claimed in select c.* from postbus_data.claim_ranges(reader, max_messages, lease, null, begin_with) as c loop
        messages := postbus_data.fetch_messages(
            reader.stream_id, claimed.partition, claimed.from_seq - 1, claimed.to_seq, claimed.message_count
        );
        return query
        select b.*
        from postbus_data.as_batches(
            array(
                select row(coalesce(claimed.token, '0000000000000000') || '-' || m.seq, 1, m.seq, m.partition, m.key, m.data, m.bytes, m.headers, m.published_at, 0, null, null, null)::postbus.delivery
                from unnest(messages) as m
            )
        ) as b;
    end loop;
end
$$;

create or replace function postbus_data.find_group(stream text, "group" text)
returns postbus_data.consumer
language plpgsql
stable
as $$
/* The row of a group. Raises PB404 for an unknown one, PB409 for a consumer that is not a group. */
declare
    reader postbus_data.consumer;
begin
    reader := (select c from postbus_data.consumer as c where c.stream_name = find_group.stream and c.name = find_group."group");
    if reader.id is null then
        perform postbus_data.raise_unknown_consumer(stream, "group", true);
    elsif not reader.is_group then
        raise exception using
            errcode = 'PB409',
            message = format('"%s" of stream "%s" is a consumer, not a group', "group", stream),
            hint = 'receive from it, or create a group of another name';
    end if;
    return reader;
end
$$;

create or replace function postbus_data.next_seqs(stream_id integer, partition integer, after_seq bigint, to_seq bigint, max_messages integer)
returns bigint[]
language plpgsql
volatile
as $$
/* The seqs of the next messages of a partition with after_seq < seq <= to_seq, in order, from all segments that may hold some. */
#variable_conflict use_variable
declare
    segment record;
    found_here bigint[];
    seqs bigint[];
begin
    for segment in
        select g.number, g.after_seq
        from postbus_data.segment as g
        where g.stream_id = stream_id
            and (g.sealed_at is null or g.last_seq > after_seq)
            and g.after_seq < to_seq
        order by g.number
    loop
        exit when cardinality(seqs) >= max_messages and seqs[max_messages] <= segment.after_seq;
        execute 'select array_agg(m.seq) from (select l.seq from postbus_data.log_' || stream_id::text || '_' || segment.number::text
            || ' as l where l.partition = $1 and l.seq > $2 and l.seq <= $3 order by l.seq limit $4) as m'
        into found_here
        using partition, after_seq, to_seq, max_messages;
        if seqs is null then
            seqs := found_here;
        elsif found_here is not null then
            seqs := array(select s from unnest(seqs || found_here) as s order by s limit max_messages);
        end if;
    end loop;
    return seqs;
end
$$;

create or replace function postbus_data.owned_partitions(consumer_id integer, worker text)
returns integer[]
language sql
volatile
as $$
/* The partitions assigned to a worker of a group; none when its session is over. */
    select coalesce(array_agg(o.partition order by o.partition), '{}')
    from postbus_data.group_worker as w
    join postbus_data.group_owner as o on o.consumer_id = w.consumer_id and o.worker = w.worker
    where w.consumer_id = owned_partitions.consumer_id
        and w.worker = owned_partitions.worker
        and w.expires_at > clock_timestamp()
$$;

create or replace function postbus.join_group(
    stream text,
    "group" text,
    worker text,
    session interval default interval '30 seconds',
    caller postbus.caller default postbus.current_caller()
)
returns integer[]
language plpgsql
volatile
security definer
set enable_seqscan = off
set search_path = pg_catalog, pg_temp
as $$
/*
Join a group as a worker, and call again before the session ends to stay in it. Partitions are shared evenly among the live
workers: a worker keeps its partitions up to its share, gives up the others and takes free ones. Then claim with the worker's
name.

A worker that does not call within its session counts as dead, and the next call by another worker takes its share. Ranges that it
has claimed stay its own until they are committed or their leases expire, so a partition never has two readers.

Returns  the worker's partitions.
Raises   PB400 for an invalid name or session, PB403 without the right to consume, PB404 for an unknown stream or group, PB409
         for a consumer that is not a group, PB412 outside READ COMMITTED.
Touches  group_worker, group_owner (insert, update, delete).
Locks    the group's assignment, until the transaction ends.
*/
#variable_conflict use_column
declare
    reader postbus_data.consumer := postbus_data.permitted_group(caller, stream, "group");
    partition_base integer := reader.partition_base;
    partition_count integer := reader.partition_count;
    worker_count integer;
    rank integer;
    share integer;
    owned integer;
begin
    perform postbus_data.check_isolation();
    perform postbus_data.check_name('worker', worker);
    if (session between interval '1 second' and interval '1 day') is not true then
        raise exception using errcode = 'PB400', message = format('session = %s is not between 1 second and 1 day', session);
    end if;
    perform pg_advisory_xact_lock(postbus_data.consumer_lock_class(reader.id), postbus_data.consumer_lock('share out'));

    insert into postbus_data.group_worker as w (consumer_id, worker, expires_at)
    values (reader.id, join_group.worker, clock_timestamp() + session)
    on conflict (consumer_id, worker) do update set expires_at = excluded.expires_at;
    delete from postbus_data.group_worker as w where w.consumer_id = reader.id and w.expires_at <= clock_timestamp();
    delete from postbus_data.group_owner as o
    where o.consumer_id = reader.id
        and (
            o.partition not between partition_base and partition_base + partition_count - 1
            or not exists (select from postbus_data.group_worker as w where w.consumer_id = o.consumer_id and w.worker = o.worker)
        );

    select count(*), count(*) filter (where w.worker < join_group.worker) into worker_count, rank
    from postbus_data.group_worker as w
    where w.consumer_id = reader.id;
    share := partition_count / worker_count + case when rank < mod(partition_count, worker_count) then 1 else 0 end;
    delete from postbus_data.group_owner as o
    where o.consumer_id = reader.id
        and o.partition in (
            select o.partition
            from postbus_data.group_owner as o
            where o.consumer_id = reader.id
                and o.worker = join_group.worker
            order by o.partition
            offset share
        );
    select count(*) into owned from postbus_data.group_owner as o where o.consumer_id = reader.id and o.worker = join_group.worker;
    insert into postbus_data.group_owner (consumer_id, partition, worker)
    select reader.id, p.n, join_group.worker
    from generate_series(partition_base, partition_base + partition_count - 1) as p (n)
    where not exists (select from postbus_data.group_owner as o where o.consumer_id = reader.id and o.partition = p.n)
    order by p.n
    limit share - owned;
    return postbus_data.owned_partitions(reader.id, worker);
end
$$;

create or replace function postbus.leave_group(
    stream text,
    "group" text,
    worker text,
    caller postbus.caller default postbus.current_caller()
)
returns void
language plpgsql
volatile
security definer
set enable_seqscan = off
set search_path = pg_catalog, pg_temp
as $$
/*
Leave a group. The other workers take over the partitions when they next call join_group.

Raises   PB403 without the right to consume, PB404 for an unknown stream or group, PB409 for a consumer that is not a group.
Touches  group_worker, group_owner (delete).
Locks    the group's assignment, until the transaction ends.
*/
declare
    reader postbus_data.consumer := postbus_data.permitted_group(caller, stream, "group");
begin
    perform pg_advisory_xact_lock(postbus_data.consumer_lock_class(reader.id), postbus_data.consumer_lock('share out'));
    delete from postbus_data.group_owner as o where o.consumer_id = reader.id and o.worker = leave_group.worker;
    delete from postbus_data.group_worker as w where w.consumer_id = reader.id and w.worker = leave_group.worker;
end
$$;

create or replace function postbus.release(
    stream text,
    "group" text,
    tokens text[],
    caller postbus.caller default postbus.current_caller()
)
returns integer
language plpgsql
volatile
security definer
set enable_seqscan = off
set search_path = pg_catalog, pg_temp
as $$
/*
Give back ranges that were claimed with a lease. The next claim gets them.

Returns  how many ranges counted.
Raises   PB400 for what is not a token, PB403 without the right to consume, PB404 for an unknown stream or group, PB409 for a consumer that is not a group.
Touches  lease (update).
*/
declare
    reader postbus_data.consumer := postbus_data.permitted_group(caller, stream, "group");
    released integer;
begin
    update postbus_data.lease as l
    set deadline = clock_timestamp()
    where l.token = any (array(select postbus_data.parse_token(t) from unnest(tokens) as t))
        and l.consumer_id + 0 = reader.id
        and l.epoch = reader.epoch;
    get diagnostics released = row_count;
    if released < cardinality(tokens) then
        -- Perhaps some are no tokens at all.
        perform count(*) from postbus_data.parse_ack_ids(tokens);
    end if;
    return released;
end
$$;

create or replace function postbus.horizon(stream text, caller postbus.caller default postbus.current_caller())
returns bigint
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
The seq up to which a stream can be read: no transaction that publishes at or below it is still open.

Raises   PB404 for an unknown stream or one on which the caller has no right, PB412 outside READ COMMITTED, PB503 on a standby.
*/
begin
    return postbus_data.horizon_of(postbus_data.permitted_stream(caller, stream, 'publish', 'consume', 'read'));
end
$$;

create or replace function postbus.horizon_holders(stream text)
returns table (
    held_at_seq bigint,
    held_for interval,
    transaction_started_at timestamptz,
    pid integer,
    user_name text,
    application_name text,
    state text,
    query text,
    prepared_transaction text
)
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
/*
The publishers that hold back the readers of a stream, the one furthest back first.

A holder is a transaction that has published and is still open, or is prepared (then pid is null). Query and application of other
users' sessions are null unless you have pg_read_all_stats.

Raises   PB404 for an unknown stream.
*/
declare
    id integer := postbus_data.stream_id(stream);
    last_seq bigint := pg_sequence_last_value(to_regclass('postbus_data.seq_' || id));
begin
    return query
    select
        l.held_at,
        clock_timestamp() - coalesce(a.xact_start, p.prepared),
        coalesce(a.xact_start, p.prepared),
        l.pid,
        coalesce(a.usename, p.owner)::text,
        a.application_name,
        a.state,
        a.query,
        p.gid
    from postbus_data.publisher_locks(id, last_seq) as l
    left join pg_stat_activity as a on a.pid = l.pid
    -- A prepared transaction has no session; the lock on its own id identifies it.
    left join pg_locks as t
        on t.locktype = 'transactionid'
        and t.virtualtransaction = l.virtual_transaction
        and t.pid is null
        and l.pid is null
    left join pg_prepared_xacts as p on p.transaction = t.transactionid
    order by l.held_at;
end
$$;

create or replace function postbus_data.begin_publish(
    stream text,
    expected_type text,
    caller postbus.caller default postbus.current_caller()
)
returns postbus_data.publish_target
language plpgsql
as $$
/*
Make this transaction a publisher of the stream: take the horizon lock, then say where to write.

Raises   PB403 without the right to publish, PB404 for an unknown stream, PB409 when its data type is not the expected one (null
         accepts any), PB507 when it is full.
Touches  stream (read), the layout register (read).
Locks    as lock_horizon.

The layout is read after the lock, and live. So a segment is known to be complete once no lock as old as its roll is left. Hot:
no PERFORM (an expression in IF is evaluated without a plan), and no search_path of its own: the public functions that call it
set theirs.
*/
declare
    entry postbus_data.publish_target;
    is_full boolean;
begin
    select s.id, s.data_type, s.max_message_bytes, s.one_message_per_key, s.channel_tokens, s.is_full
    into entry.stream_id, entry.data_type, entry.max_message_bytes, entry.one_message_per_key, entry.channel_tokens, is_full
    from postbus_data.stream as s
    where s.name = begin_publish.stream;

    entry.sequence := to_regclass('postbus_data.seq_' || entry.stream_id::text);
    if not postbus_data.has_right(caller, entry.stream_id, 'publish') then
        perform postbus_data.raise_not_permitted(caller, stream, 'publish');
    end if;
    if entry.sequence is null or expected_type <> entry.data_type or is_full then
        perform postbus_data.raise_cannot_publish(stream, entry.data_type, expected_type);
    end if;
    if postbus_data.lock_horizon(entry.stream_id, entry.sequence) then
        entry.layout := pg_sequence_last_value(to_regclass('postbus_data.layout_' || entry.stream_id::text));
    end if;
    if entry.layout is null then
        perform postbus_data.sequence_value('postbus_data.layout_' || entry.stream_id::text);
    end if;
    return entry;
end
$$;

create or replace function postbus_data.check_isolation()
returns void
language plpgsql
volatile
as $$
/* Refuse a transaction that keeps its snapshot (PB412): it does not see what others have committed since. */
begin
    if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
        raise exception using
            errcode = 'PB412',
            message = format('this is not possible in a %s transaction', upper(current_setting('transaction_isolation'))),
            hint = 'use READ COMMITTED: an older snapshot would miss messages';
    end if;
end
$$;

create or replace function postbus_data.horizon_of(stream_id integer)
returns bigint
language plpgsql
volatile
as $$
/*
The seq up to which every message is committed or will never exist.

A reader calls it in a statement of its own and reads rows in a later one, with a younger snapshot. In one statement, or under a
snapshot that is kept, a message that commits in between would never be read. Hence the isolation check.

Raises   PB412 outside READ COMMITTED, PB503 on a standby (its sequences run ahead and it sees no locks).
*/
declare
    last_seq bigint;
    oldest bigint;
begin
    perform postbus_data.check_isolation();
    if pg_is_in_recovery() then
        raise exception using
            errcode = 'PB503',
            message = 'this server is a standby: it cannot tell which messages are complete',
            hint = 'connect to the primary';
    end if;

    last_seq := postbus_data.sequence_value('postbus_data.seq_' || stream_id::text);
    select min(l.held_at) into oldest from postbus_data.publisher_locks(stream_id, last_seq) as l;
    return least(last_seq, oldest);
end
$$;

create or replace function postbus_data.lock_horizon(stream_id integer, sequence regclass)
returns boolean
language plpgsql
as $$
/*
Keep the readers of a stream below whatever this transaction publishes, until it ends.

Returns  true.
Raises   PB404 when the stream was dropped, PB503 when another application holds an exclusive lock on the same key.
Locks    once per transaction and stream, a shared advisory lock whose key is the sequence's last_value. It is taken before the
         first nextval, so that readers stay below every seq drawn under it.

A setting records the lock, so that 10,000 publishes do not take 10,000 locks. A rollback, also to a savepoint, undoes both. Any
session may write anything into the setting, so it is not trusted: the lock that it names is taken again, which costs next to
nothing if it is held, and only if its key does not lie above the sequence.
*/
declare
    transaction_id text := pg_current_xact_id()::text;
    entered text := current_setting('postbus.entered', true);
    last_seq bigint := pg_sequence_last_value(sequence);
    held_seq bigint;
begin
    if last_seq is null then
        raise exception using errcode = 'PB404', message = 'the stream was dropped';
    end if;
    if entered is null or not starts_with(entered, transaction_id || ':') then
        entered := transaction_id || ':';
    end if;
    held_seq := nullif(split_part(split_part(entered, ':' || stream_id::text || '=', 2), ':', 1), '')::bigint;
    -- Beyond 2^32 numbers a key says something else; see publisher_locks.
    if (held_seq between last_seq - 4000000000 and last_seq) is not true then
        held_seq := last_seq;
        entered := set_config('postbus.entered', entered || ':' || stream_id::text || '=' || held_seq::text || ':', true);
    end if;
    if not pg_try_advisory_xact_lock_shared(postbus_data.publisher_lock_class(stream_id), postbus_data.publisher_lock_key(held_seq)) then
        raise exception using
            errcode = 'PB503',
            message = 'another application holds an advisory lock that stream ' || stream_id::text || ' needs';
    end if;
    return true;
end
$$;

create or replace function postbus_data.publisher_lock_class(stream_id integer)
returns integer
language sql
immutable parallel safe
as $$
/*
The class of the advisory locks with which publishers of a stream hold its horizon.

They are two-key locks of class 2^30 + stream id. Mutexes use classes from 2^30 + 2^29 up: a mutex that looked like a
publisher's lock would freeze the horizon. Applications rarely use two-key advisory locks with classes that high.
*/
    select 1073741824 + stream_id
$$;

create or replace function postbus_data.publisher_lock_key(seq bigint)
returns integer
language sql
immutable parallel safe
as $$
/*
The low 32 bits of a seq as the signed key of an advisory lock; pg_locks shows the same bits unsigned.

The body names the seq once, so that a call with a volatile argument is inlined.
*/
    select ((seq << 32) >> 32)::integer
$$;

create or replace function postbus_data.publisher_locks(stream_id integer, last_seq bigint)
returns table (pid integer, virtual_transaction text, held_at bigint)
language sql
volatile
as $$
/*
The horizon locks that open publishers of a stream hold now, each with the seq at which it holds the horizon.

A key is 32 bits of a seq, so its seq is found by its distance below last_seq modulo 2^32: a stream may pass 2^31, and an open
publisher may fall four billion messages behind. A lock taken since last_seq was read lies a little above it.
*/
    select l.pid, l.virtualtransaction, last_seq - distance.behind
    from pg_catalog.pg_locks as l
    cross join lateral (select (last_seq - l.objid::bigint) & 4294967295 as behind) as distance
    where l.locktype = 'advisory'
        and l.database = (select d.oid from pg_catalog.pg_database as d where d.datname = current_database())
        and l.classid = postbus_data.publisher_lock_class(stream_id)::oid
        and l.objsubid = 2
        and l.mode = 'ShareLock'
        and l.granted
        and distance.behind < 4294967296 - 16777216
$$;

create or replace function postbus_data.raise_cannot_publish(stream text, data_type text, expected_type text)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
/*
Raise the error for a stream that cannot be published to: PB404 when it does not exist, PB409 when it has another data type,
PB507 when it is full.
*/
begin
    perform postbus_data.stream_id(stream);
    if data_type = coalesce(expected_type, data_type) then
        raise exception using
            errcode = 'PB507',
            message = format('stream "%s" is full: it has reached max_messages or max_storage, and nothing may be dropped', stream),
            hint = 'consume or purge messages, or raise the limit; publishing works again once there is room';
    end if;
    raise exception using
        errcode = 'PB409',
        message = format('stream "%s" holds %s, not %s', stream, data_type, expected_type);
end
$$;

create or replace function postbus_data.sequence_value(sequence text)
returns bigint
language plpgsql
volatile
as $$
/*
The last value of one of Postbus's sequences, whatever the snapshot.

Raises   PB404 when the sequence is gone, PB403 when this role may not read it: Postgres 18 then returns null, which would be
         taken for "nobody is publishing".
*/
declare
    found_sequence regclass := to_regclass(sequence);
    value bigint := pg_sequence_last_value(found_sequence);
begin
    if found_sequence is null then
        raise exception using errcode = 'PB404', message = 'the stream was dropped';
    end if;
    if value is null then
        raise exception using
            errcode = 'PB403',
            message = format('permission denied for sequence %s', sequence),
            hint = 'call this as a member of the role that owns Postbus';
    end if;
    return value;
end
$$;

create or replace function postbus.lock_holders(stream text default null)
returns table (
    stream_name text,
    consumer_name text,
    purpose text,
    partition integer,
    mode text,
    warning text,
    held_for interval,
    pid integer,
    user_name text,
    application_name text,
    state text,
    query text,
    prepared_transaction text
)
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
/*
The sessions that hold Postbus's advisory locks, on one stream or on all, the oldest transaction first. Read-only.

purpose   publish (readers wait for it), claim (of a partition), redeliver, sweep, count (near max_ack_pending), share out (a
          group's partitions), change layout, note urgent (that no urgent messages are left; nobody waits for it), maintain or schedule.
mode      shared or exclusive. Publishers take shared locks, everything else takes exclusive ones.
warning   why the lock is probably not one that Postbus took; null if nothing indicates that. Any role can take such a lock, and a
          session that waits for it cannot tell.
held_for  how long its transaction has been open; for a lock that outlives transactions, the time since the session's last
          activity.

pid is null for a prepared transaction. Other users' query and times are null unless you have pg_read_all_stats.

Raises   PB404 for an unknown stream.
*/
#variable_conflict use_column
declare
    wanted integer := case when stream is not null then postbus_data.stream_id(stream) end;
begin
    return query
    with held as (
        select
            l.*,
            l.classid::bigint - 1073741824 as class,
            ((l.objid::bigint << 32) >> 32)::integer as key,
            l.mode = 'ShareLock' as is_shared,
            l.classid::bigint < 1610612736 as is_publisher
        from pg_locks as l
        where l.locktype = 'advisory'
            and l.database = (select d.oid from pg_database as d where d.datname = current_database())
            and l.objsubid = 2
            and l.granted
            and l.classid::bigint between 1073741825 and 2147483647
    ),
    named as (
        select
            h.*,
            coalesce(c.stream_id, s.id) as stream_id,
            coalesce(c.stream_name, s.name) as stream_name,
            c.name as consumer_name
        from held as h
        left join postbus_data.consumer as c on not h.is_publisher and c.id = h.class - 536870912
        left join postbus_data.stream as s on s.id = case when h.is_publisher then h.class when h.class = 536870912 then abs(h.key) end
    )
    select
        n.stream_name,
        n.consumer_name,
        case
            when n.is_publisher then 'publish'
            when n.consumer_name is null and n.key < 0 then 'schedule'
            when n.consumer_name is null then 'maintain'
            when n.key >= 0 then 'claim'
            else coalesce(('{redeliver,sweep,count,share out,null,change layout,note urgent}'::text[])[-n.key], 'nothing')
        end,
        case when n.consumer_name is not null and n.key >= 0 then n.key end,
        case when n.is_shared then 'shared' else 'exclusive' end,
        case
            when not has_schema_privilege(a.usesysid, 'postbus', 'usage') then 'its role has no right to use Postbus'
            when n.is_publisher and not n.is_shared then 'publishers take shared locks, and this one is exclusive'
            when n.is_shared and not n.is_publisher then 'this lock is shared, and Postbus takes exclusive ones'
            when a.state = 'idle' then 'its session has no transaction, and keeps it until it ends'
            when n.is_publisher and t.transactionid is null then 'its transaction has written nothing'
        end,
        clock_timestamp() - coalesce(a.xact_start, p.prepared, a.state_change),
        n.pid,
        coalesce(a.usename, p.owner)::text,
        a.application_name,
        a.state,
        a.query,
        p.gid
    from named as n
    left join pg_stat_activity as a on a.pid = n.pid
    left join pg_locks as t
        on t.locktype = 'transactionid'
        and t.mode = 'ExclusiveLock'
        and t.virtualtransaction = n.virtualtransaction
        and t.pid is not distinct from n.pid
    left join pg_prepared_xacts as p on n.pid is null and p.transaction = t.transactionid
    where n.stream_name is not null
        and (wanted is null or n.stream_id = wanted)
        and n.pid is distinct from pg_backend_pid()
    order by coalesce(a.xact_start, p.prepared, a.state_change), n.pid, 3, n.key;
end
$$;

create or replace function postbus.ingested_files(pipeline text)
returns table (path text, bytes bigint, modified_at timestamptz, state text, step bigint, taken_at timestamptz, done_at timestamptz, changed_at timestamptz)
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
The files that a pipeline has taken, in the order in which it reads them.

bytes, modified_at  as they were when the file was taken.
state               taken (still to be read, or being read), done, gone (deleted before it was read), or changed (its size or
                    time has changed since it was done; the new content is not read).

Returns  a row for each file of the pipeline's latest plan; none for an unknown pipeline.
*/
    select
        i.path,
        i.bytes,
        i.modified_at,
        case
            when i.done_at is null then 'taken'
            when i.is_gone then 'gone'
            when i.changed_at is not null then 'changed'
            else 'done'
        end,
        i.step,
        i.taken_at,
        i.done_at,
        i.changed_at
    from postbus_data.ingest_file as i
    where i.pipeline = ingested_files.pipeline
        and i.writer = (select p.plan ->> 'writer' from postbus_data.pipeline as p where p.name = ingested_files.pipeline)
    order by i.step, i.modified_at, i.path
$$;

create or replace function postbus_data.finish_files(pipeline text, run uuid, writer text, step bigint, gone text[])
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
/*
Record that a step of a pipeline is done: the rows of its files are published, or rejected to the side stream. Files that are
gone were not read.

Raises   PB409 when another run has replaced this one.
Locks    the pipeline's row.
*/
begin
    perform postbus_data.hold_pipeline(finish_files.pipeline, finish_files.run);
    update postbus_data.ingest_file as i
    set done_at = clock_timestamp(),
        is_gone = i.path = any (gone)
    where i.writer = finish_files.writer
        and i.step = finish_files.step
        and i.done_at is null;
end
$$;

create or replace function postbus_data.take_files(
    pipeline text,
    run uuid,
    writer text,
    files jsonb,
    most_files integer,
    most_bytes bigint
)
returns table (step bigint, path text, is_there boolean)
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
/*
The files of a pipeline's next step. If a step was begun and is not done, it is that one; otherwise take the oldest files never
taken.

files                   the files that exist now: [{"path", "bytes", "modified_at"}].
most_files, most_bytes  limits of a new step. A larger file has a step of its own.

Returns  no row when there is nothing to do.
Raises   PB409 when another run has replaced this one.
Touches  ingest_file (insert; update of files that have changed).
Locks    the pipeline's row, so that two runs cannot both take files.
*/
#variable_conflict use_column
declare
    next_step bigint;
begin
    perform postbus_data.hold_pipeline(take_files.pipeline, take_files.run);
    update postbus_data.ingest_file as i
    set changed_at = clock_timestamp()
    from jsonb_to_recordset(files) as f (path text, bytes bigint, modified_at timestamptz)
    where i.writer = take_files.writer
        and i.path = f.path
        and i.changed_at is null
        and (i.bytes, i.modified_at) is distinct from (f.bytes, f.modified_at);

    next_step := (
        select min(i.step) from postbus_data.ingest_file as i where i.writer = take_files.writer and i.done_at is null
    );
    if next_step is null then
        next_step := (
            select coalesce(max(i.step) + 1, 0) from postbus_data.ingest_file as i where i.writer = take_files.writer
        );
        insert into postbus_data.ingest_file (pipeline, writer, step, path, bytes, modified_at)
        select take_files.pipeline, take_files.writer, next_step, n.path, n.bytes, n.modified_at
        from (
            select
                f.*,
                row_number() over oldest_first as place,
                sum(f.bytes) over oldest_first as bytes_so_far
            from jsonb_to_recordset(files) as f (path text, bytes bigint, modified_at timestamptz)
            where not exists (
                select
                from postbus_data.ingest_file as i
                where i.writer = take_files.writer
                    and i.path = f.path
            )
            window oldest_first as (order by f.modified_at, f.path)
        ) as n
        where n.place <= most_files
            and (n.place = 1 or n.bytes_so_far <= most_bytes);
    end if;
    return query
    select i.step, i.path, f.path is not null
    from postbus_data.ingest_file as i
    left join jsonb_to_recordset(files) as f (path text) on f.path = i.path
    where i.writer = take_files.writer
        and i.step = next_step
    order by i.modified_at, i.path;
end
$$;

create or replace function postbus_data.close_functions()
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
/*
Let everybody call only the functions that check their caller's rights themselves, and those that reveal nothing. All others are
for members of the role that owns Postbus. The functions of a stream are for roles with a right on it, see apply_grants. Called
at the end of each install and upgrade.
*/
declare
    opened text;
begin
    revoke execute on all functions in schema postbus, postbus_data from public;
    foreach opened in array postbus_data.open_functions() loop
        execute format('grant execute on function %s to public', opened);
    end loop;
    grant select on postbus_data.current_caller, postbus_data.migration, postbus_data.installation to public;
end
$$;

create or replace function postbus_data.comment_functions()
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
/* Make \df+ show each public function's header. Called at the end of each install and upgrade. */
declare
    public_one record;
begin
    for public_one in
        select p.oid::regprocedure as signature, trim(e'\n ' from substring(p.prosrc from '/\*(.*?)\*/')) as header
        from pg_proc as p
        where p.pronamespace = 'postbus'::regnamespace
    loop
        execute format('comment on function %s is %L', public_one.signature, public_one.header);
    end loop;
end
$$;

create or replace function postbus_data.open_functions()
returns text[]
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
/*
The functions that any role with a grant may call: those that take a caller and check its rights, and a few that reveal nothing.
*/
    select array_agg(p.oid::regprocedure::text order by p.oid::regprocedure::text)
    from pg_proc as p
    where (
            p.pronamespace in ('postbus'::regnamespace, 'postbus_data'::regnamespace)
            and p.prosecdef
            and p.proargnames[p.pronargs] = 'caller'
        )
        or p.oid = any (array[
            'postbus.current_caller'::regproc,
            'postbus.partition_of'::regproc,
            'postbus.priority_of'::regproc,
            'postbus_data.pattern_regex'::regproc,
            'postbus_data.spark_check'::regproc
        ]::oid[])
$$;

create or replace function postbus_data.own_objects(owner name)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
/*
Give everything in the schemas of Postbus to one role. Functions run with the rights of their owner, so all must have the same
owner, whichever member of that role has installed or upgraded them.
*/
declare
    object record;
begin
    for object in
        select case c.relkind when 'S' then 'sequence' when 'v' then 'view' else 'table' end as kind, c.oid::regclass::text as name
        from pg_class as c
        where c.relnamespace in ('postbus'::regnamespace, 'postbus_data'::regnamespace)
            and (
                c.relkind in ('r', 'p', 'v')
                -- Those of identity columns go with their tables.
                or (c.relkind = 'S' and not exists (select from pg_depend as d where d.objid = c.oid and d.deptype = 'i'))
            )
            and pg_get_userbyid(c.relowner) <> owner
        union all
        select 'type', t.oid::regtype::text
        from pg_type as t
        join pg_class as c on c.oid = t.typrelid and c.relkind = 'c'
        where t.typnamespace in ('postbus'::regnamespace, 'postbus_data'::regnamespace)
            and pg_get_userbyid(t.typowner) <> owner
        union all
        select 'function', p.oid::regprocedure::text
        from pg_proc as p
        where p.pronamespace in ('postbus'::regnamespace, 'postbus_data'::regnamespace)
            and pg_get_userbyid(p.proowner) <> owner
    loop
        execute format('alter %s %s owner to %I', object.kind, object.name, owner);
    end loop;
end
$$;

create or replace function postbus_data.render(template text, names jsonb)
returns text
language plpgsql
immutable
as $$
/*
A template with the names in braces filled in. Names of streams are literals in it, and hold no braces.

Raises   PB500 for a name in the template that is not among names.
*/
declare
    name record;
    unknown text;
begin
    for name in select n.key, n.value from jsonb_each_text(names) as n loop
        template := replace(template, '{' || name.key || '}', name.value);
    end loop;
    unknown := substring(template from '\{[a-z_]+\}');
    if unknown is not null then
        raise exception using errcode = 'PB500', message = format('nothing is known of %s in a template', unknown);
    end if;
    return template;
end
$$;

create or replace function postbus_data.key_problem(key text)
returns text
language sql
immutable parallel safe
as $$
/* Why a key is invalid, or null if it is valid. Null is a message without a key. */
    select case
        when key is null then null
        when key = '' then 'its key is empty (leave the key out for a message without one)'
        when length(key) > 255 then format('its key has %s characters, and 255 are allowed', length(key))
        when key ~ '[\x01-\x20\x7f*>]' then format('its key "%s" has a space, control character, "*" or ">"', key)
        when strpos('.' || key || '.', '..') > 0 then format('its key "%s" has an empty token', key)
    end
$$;

create or replace function postbus_data.pattern_regex(pattern text)
returns text
language plpgsql
immutable parallel safe
as $$
/*
The regular expression for a key pattern, by the rules of NATS: "*" is one token, ">" one or more at the end.

Raises   PB400 for a pattern with an empty token, a wildcard inside a token, or ">" before the end.
*/
declare
    tokens text[] := string_to_array(pattern, '.');
    token text;
    regex text := '';
begin
    if pattern is null then
        return null;
    end if;
    for position in 1 .. greatest(cardinality(tokens), 1) loop
        token := tokens[position];
        if token is null
            or token = ''
            or token ~ '[\x01-\x20\x7f]'
            or (token ~ '[*>]' and token not in ('*', '>'))
            or (token = '>' and position < cardinality(tokens))
        then
            raise exception using
                errcode = 'PB400',
                message = format('key pattern "%s" is not allowed', left(pattern, 300)),
                hint = 'tokens are separated by "."; "*" stands for one token and ">", at the end, for one or more';
        end if;
        regex := regex || case when position > 1 then '[.]' else '^' end || case token
            when '*' then '[^.]+'
            when '>' then '.+'
            -- Each character by itself in brackets needs no escape, but for "^" and the backslash, which is written as a
            -- number because its meaning in a literal depends on a setting.
            else (
                select string_agg(case when c in ('^', chr(92)) then chr(92) || c else '[' || c || ']' end, '' order by n)
                from regexp_split_to_table(token, '') with ordinality as s (c, n)
            )
        end;
    end loop;
    return regex || '$';
end
$$;

create or replace function postbus_data.tokens_are_valid(key text)
returns boolean
language sql
immutable parallel safe
as $$
/*
Whether a key has neither empty tokens nor invalid characters: control characters, space, "*" and ">".

Keys joined with "." are valid exactly when each of them is, so one call checks a batch.
*/
    select key !~ '[\x01-\x20\x7f*>]' and strpos('.' || key || '.', '..') = 0
$$;

create or replace function postbus.partition_of(key text, partitions integer)
returns integer
language sql
immutable strict parallel safe
as $$
/*
The partition of a key among that many partitions, counted from 0: the first three bytes of the key's SHA-256, modulo their
number.

It is the same in every language and never changes. SHA-256 is available in Postgres, Python and Spark, and on a server in FIPS
mode, which has no MD5. Postgres's own hash functions differ between platforms.
*/
    select mod((get_byte(h.hash, 0) << 16) | (get_byte(h.hash, 1) << 8) | get_byte(h.hash, 2), partitions)
    from (select sha256(convert_to(key, 'UTF8'::name)) as hash offset 0) as h
$$;

create or replace function postbus_data.check_priorities(priorities integer[], is_batch boolean)
returns void
language plpgsql
immutable
as $$
/* Refuse a priority that is out of range (PB400); in a batch, the message says which message has it. */
declare
    wrong record;
begin
    select p.priority, p.place
    into wrong
    from unnest(priorities) with ordinality as p (priority, place)
    where p.priority not between 0 and 9
    order by p.place
    limit 1;
    if wrong.place is not null then
        raise exception using
            errcode = 'PB400',
            message = case
                when is_batch
                    then format('%s is not allowed: priority = %s is not between 0 and 9', postbus_data.message_name(wrong.place::integer), wrong.priority)
                else format('priority = %s is not between 0 and 9', wrong.priority)
            end,
            hint = '9 is the most urgent, and 4 the default';
    end if;
end
$$;

create or replace function postbus_data.has_levels(layout bigint)
returns boolean
language sql
immutable parallel safe
as $$
/* Whether messages of another priority than the default were published, as a layout register says: see pack_layout. Written to be inlined. */
    select ((layout - 1) & 1024) <> 0
$$;

create or replace function postbus_data.lane_of(priority integer)
returns integer
language sql
immutable parallel safe
as $$
/*
Where the partitions of a level begin: partition p of level 7 is 700000000 + p. Level 4, the default, begins at 0, and the levels below it are one
up (level 0 at 100000000), so that all levels above the default lie from 500000000 on. Written to be inlined.
*/
    select case when priority < 4 then priority + 1 when priority > 4 then priority else 0 end * 100000000
$$;

create or replace function postbus_data.lane_start(stream_id integer, lane integer)
returns bigint
language sql
stable
as $$
/*
A seq below all messages of a level that can be seen. A publisher that is still open may have used the level first, at a lower seq: whoever reads on
from here looks at the horizon before, and takes the lower one.
*/
    select coalesce(min(l.since_seq), 0)
    from postbus_data.level as l
    where l.stream_id = lane_start.stream_id
        and postbus_data.lane_of(l.priority) = lane_start.lane
        and lane_start.lane > 0
$$;

create or replace function postbus_data.lane_work(
    reader postbus_data.consumer,
    lane integer,
    horizon bigint,
    only_new boolean default false
)
returns table (partition integer, head_at timestamptz)
language plpgsql
volatile
set enable_seqscan = off
set enable_bitmapscan = off
as $$
/*
The partitions of a level in which a consumer may find something, judged by what is committed: an unread message up to the horizon, a parked one, or one
that has failed, in an order in which these wait in their partition.

horizon   read in an earlier statement.
only_new  leave out partitions that have only failed messages, or that were not looked at for long.

Returns  head_at: when the next unread message was published.
*/
#variable_conflict use_variable
declare
    base integer := lane + reader.partition_base;
    last integer := base + reader.partition_count - 1;
    lane_start bigint := greatest(reader.start_after, least(postbus_data.lane_start(reader.stream_id, lane), horizon));
    taken_to bigint := (select s.start_seq - 1 from postbus_data.stream as s where s.id = reader.stream_id);
    is_ordered boolean := reader.ordering <> 'none' and not only_new;
    older_failures boolean := false;
    partitions integer[];
    after_seqs bigint[];
    others integer[];
    segment record;
    head record;
begin
    if lane >= 500000000 then
        taken_to := greatest(
            taken_to,
            (
                select u.read_to_seq
                from postbus_data.urgent_position as u
                where u.consumer_id = reader.id
                    and u.epoch = reader.epoch
                order by u.read_to_count desc
                limit 1
            )
        );
    end if;
    if is_ordered and reader.partition_base > 0 then
        older_failures := exists (
            select from postbus_data.waiting as w where w.consumer_id = reader.id and w.partition >= lane and w.partition < base
        );
    end if;
    select
        array_agg(p.n), array_agg(greatest(coalesce(place.read_to_seq, lane_start), taken_to)),
        array_agg(p.n) filter (
            where place.parked_from is not null
                or (not only_new and greatest(coalesce(place.read_to_seq, lane_start), taken_to) < horizon - 10000)
                or older_failures
                or (
                    is_ordered
                    and exists (select from postbus_data.waiting as w where w.consumer_id = reader.id and w.partition = p.n)
                )
        )
    into partitions, after_seqs, others
    from generate_series(base, last) as p (n)
    left join lateral (
        select r.read_to_seq, r.parked_from
        from postbus_data.position as r
        where r.consumer_id = reader.id
            and r.epoch = reader.epoch
            and r.partition = p.n
        order by r.read_to_seq desc
        limit 1
    ) as place on true;

    for segment in
        select postbus_data.log_table(g.stream_id, g.number) as log
        from postbus_data.segment as g
        where g.stream_id = reader.stream_id
            and (g.sealed_at is null or g.last_seq > (select min(a) from unnest(after_seqs) as a))
            and g.after_seq < horizon
        order by g.number
    loop
        for head in execute format(
            'select p.partition, p.place, m.published_at
            from unnest($1, $2) with ordinality as p (partition, after_seq, place)
            cross join lateral (
                select l.published_at
                from %s as l
                where l.partition = p.partition
                    and l.seq > p.after_seq
                    and l.seq <= $3
                order by l.seq
                limit 1
            ) as m',
            segment.log
        ) using partitions, after_seqs, horizon
        loop
            partition := head.partition;
            head_at := head.published_at;
            return next;
            partitions[head.place] := null;
            others := array_remove(others, head.partition);
        end loop;
        exit when array_remove(partitions, null) = '{}';
    end loop;
    head_at := null;
    foreach partition in array coalesce(others, '{}') loop
        return next;
    end loop;
end
$$;

create or replace function postbus_data.lanes(stream_id integer)
returns integer[]
language sql
stable
as $$
/* Where the partitions of each level in use begin (see lane_of), that of the highest level first. Level 4 is always among them. */
    select array_agg(postbus_data.lane_of(l.priority) order by l.priority desc)
    from (
        select u.priority from postbus_data.level as u where u.stream_id = lanes.stream_id
        union
        select 4
    ) as l
$$;

create or replace function postbus_data.lanes_in_turn(reader postbus_data.consumer, horizon bigint)
returns integer[]
language sql
volatile
as $$
/*
The levels in use, as lanes, in the order in which a consumer is to be served: the highest first. With ageing, a level rises by one for each such interval
that its first message has waited.
*/
    select case
        when reader.ageing is null then postbus_data.lanes(reader.stream_id)
        else (
            select array_agg(l.lane order by l.head_at - postbus.priority_of(l.lane) * reader.ageing, l.place)
            from (
                select
                    u.lane, u.place,
                    coalesce((select min(w.head_at) from postbus_data.lane_work(reader, u.lane, horizon) as w), clock_timestamp()) as head_at
                from unnest(postbus_data.lanes(reader.stream_id)) with ordinality as u (lane, place)
            ) as l
        )
    end
$$;

create or replace function postbus_data.levels_are_stale(stream_id integer)
returns boolean
language sql
volatile
as $$
/*
Whether a stream's own functions do not know yet of the levels that are in use: they were written for another value of the layout register, or the one that
receives does not look for redeliveries of an urgent level.
*/
    select exists (select from postbus_data.level as l where l.stream_id = levels_are_stale.stream_id)
        and not (
            postbus_data.has_levels(pg_sequence_last_value(to_regclass('postbus_data.layout_' || levels_are_stale.stream_id)))
            and coalesce(
                (
                    select bool_and(strpos(p.prosrc, w.text) > 0)
                    from pg_proc as p
                    cross join (
                        select format('= %s::bigint', pg_sequence_last_value(to_regclass('postbus_data.layout_' || levels_are_stale.stream_id)))
                        union all
                        select format('reader.epoch, %s)', lane)
                        from unnest(postbus_data.lanes(levels_are_stale.stream_id)) as lane
                        where lane >= 500000000
                    ) as w (text)
                    where p.oid = to_regproc('postbus_data.ack_and_receive_' || levels_are_stale.stream_id)
                ),
                false
            )
        )
$$;

create or replace function postbus_data.mark_levels(stream_id integer, wait_until timestamptz)
returns boolean
language plpgsql
volatile
as $$
/*
Say in the layout register that the stream has levels: at once, for every snapshot, and whether this transaction commits or not. Receives that were
written for a stream without levels leave the short way then.

Maintenance also writes the register, under its mutex. That is held here for a moment only: the end of the inner block gives it back, by a rollback that
does not undo the register.

Returns  false when maintenance held its mutex until wait_until: the next publisher, or maintenance, will mark it.
Touches  the layout register.
*/
declare
    register regclass := to_regclass('postbus_data.layout_' || stream_id::text);
    layout bigint;
begin
    loop
        begin
            if pg_try_advisory_xact_lock(postbus_data.consumer_lock_class(0), stream_id) then
                layout := pg_sequence_last_value(register);
                if not postbus_data.has_levels(layout) then
                    perform setval(
                        register, postbus_data.pack_layout(postbus_data.layout_segment(layout), postbus_data.layout_base(layout), postbus_data.layout_count(layout), true)
                    );
                end if;
                raise transaction_rollback using message = 'give the mutex back';
            end if;
        exception when transaction_rollback then
            return true;
        end;
        if clock_timestamp() >= wait_until then
            return false;
        end if;
        perform pg_sleep(0.001);
    end loop;
end
$$;

create or replace function postbus_data.next_priority(reader postbus_data.consumer)
returns integer
language plpgsql
volatile
as $$
/*
The priority of the messages that a consumer is given next: those that are available at lower levels wait. Null when that is not known: with ageing, in
a group, and where there are no levels.
*/
declare
    lane integer;
    horizon bigint;
begin
    if reader.is_group
        or reader.ageing is not null
        or not postbus_data.has_levels(pg_sequence_last_value(to_regclass('postbus_data.layout_' || reader.stream_id)))
    then
        return null;
    end if;
    horizon := postbus_data.horizon_of(reader.stream_id);
    foreach lane in array postbus_data.lanes(reader.stream_id) loop
        if postbus_data.has_due(reader.id, reader.epoch, lane)
            or exists (select from postbus_data.lane_work(reader, lane, horizon, true) as w where w.head_at is not null)
        then
            return postbus.priority_of(lane);
        end if;
    end loop;
    return null;
end
$$;

create or replace function postbus_data.note_levels(stream_id integer, priorities integer[], first_seq bigint)
returns void
language plpgsql
volatile
as $$
/*
Say that messages of these priorities were published, so that readers look for them.

first_seq  the lowest of their seqs, which were drawn before. So whoever reads the counter of urgent messages, then the last seq, and then finds the
           horizon up to there, can see all the messages that were counted.

Publishers do not wait for each other: two that use a level first at the same moment both note it.

Raises   PB409 when a consumer of the stream reads in order "partition", which has no place for levels.
Touches  level (insert), the layout register, the counter of urgent messages.
*/
#variable_conflict use_variable
declare
    level integer;
    reader_name text;
begin
    for level in select distinct p from unnest(priorities) as p where p <> 4 loop
        continue when exists (
            select
            from postbus_data.level as l
            where l.stream_id = stream_id
                and l.priority = level
                and l.since_seq < first_seq
        );
        select c.name into reader_name
        from postbus_data.consumer as c
        where c.stream_id = stream_id
            and c.ordering = 'partition'
            and not c.is_group
        limit 1;
        if reader_name is not null then
            raise exception using
                errcode = 'PB409',
                message = format('priority = %s is not possible: consumer "%s" reads the stream in order "partition"', level, reader_name),
                hint = 'levels need consumers in order "key" or "none"; create that one anew';
        end if;
        insert into postbus_data.level (stream_id, priority, since_seq) values (stream_id, level, first_seq - 1);
    end loop;
    if not postbus_data.has_levels(pg_sequence_last_value(to_regclass('postbus_data.layout_' || stream_id::text)))
        and exists (select from unnest(priorities) as p where p <> 4)
    then
        perform postbus_data.mark_levels(stream_id, clock_timestamp() + interval '100 milliseconds');
    end if;
    if exists (select from unnest(priorities) as p where p > 4) then
        perform nextval(to_regclass('postbus_data.urgent_' || stream_id::text));
    end if;
end
$$;

create or replace function postbus_data.note_urgent_read(reader postbus_data.consumer, counted bigint, last_seq bigint, horizon bigint)
returns void
language plpgsql
volatile
as $$
/*
Note that a consumer has taken all messages of the levels above the default that were counted so far, if it has. Then a receive need not look for any
until others are counted.

counted   the counter of urgent messages, read first.
last_seq  the last seq, read after that.
horizon   read after that.

What is committed is enough to judge by: positions only move on over messages that are leased or parked, and parked ones count here.
Touches  urgent_position (insert; delete of the last one).
Locks    a mutex for this row, until the transaction ends; does nothing if another session holds it.
*/
#variable_conflict use_variable
declare
    former record;
begin
    if horizon < last_seq then
        return;
    end if;
    select u.read_to_count, u.read_to_seq
    into former
    from postbus_data.urgent_position as u
    where u.consumer_id = reader.id
        and u.epoch = reader.epoch
    order by u.read_to_count desc
    limit 1;
    if former.read_to_count >= counted
        or postbus_data.is_behind(reader)
        or exists (
            select
            from unnest(postbus_data.lanes(reader.stream_id)) as lane
            cross join lateral postbus_data.lane_work(reader, lane, horizon, true) as w
            where lane >= 500000000
        )
        or not pg_try_advisory_xact_lock(postbus_data.consumer_lock_class(reader.id), postbus_data.consumer_lock('note urgent'))
    then
        return;
    end if;
    delete from postbus_data.urgent_position as u
    where u.consumer_id = reader.id
        and u.epoch = reader.epoch
        and u.read_to_count = former.read_to_count;
    insert into postbus_data.urgent_position (consumer_id, epoch, read_to_count, read_to_seq)
    values (reader.id, reader.epoch, counted, last_seq)
    on conflict on constraint urgent_position_pkey do nothing;
end
$$;

create or replace function postbus_data.pack_layout(segment integer, partition_base integer, partition_count integer, has_levels boolean)
returns bigint
language sql
immutable
as $$
/*
The value of a layout register: 29 bits of segment, 24 of base, 11 of count. Counts are 1 to 1024, and with levels 1025 to 2047 and, for 1024, 0.
*/
    select (segment::bigint << 35) | (partition_base::bigint << 11) | mod(partition_count + case when has_levels then 1024 else 0 end, 2048)
$$;

create or replace function postbus_data.refresh_levels(stream_id integer)
returns integer
language plpgsql
volatile
as $$
/*
Write a stream's own functions anew when a level was used first. Until then they leave all work to the general ones, which takes longer.

Its caller holds the stream's maintenance mutex.
Returns  1 if it did, else 0.
Touches  the layout register, if no publisher could mark it.
*/
begin
    if not postbus_data.levels_are_stale(stream_id) then
        return 0;
    end if;
    perform postbus_data.mark_levels(stream_id, clock_timestamp());
    perform postbus_data.create_publish_functions(stream_id);
    perform postbus_data.create_receive_function(stream_id);
    return 1;
end
$$;

create or replace function postbus_data.save_slot(
    place postbus_data.position,
    leases bigint[],
    pending_bound integer,
    pending_since timestamptz
)
returns void
language plpgsql
volatile
as $$
/*
What is in flight is recorded with the partition of the default level, for the same partition of all levels: so no two messages of a key are in flight,
whatever their levels, and the limit of messages in flight counts all of them.

place  of the same partition in another level.

Its caller holds the partition's mutex.
Touches  position (insert; delete of the last one).
*/
#variable_conflict use_variable
declare
    slot postbus_data.position;
begin
    select p.*
    into slot
    from postbus_data.position as p
    where p.consumer_id = place.consumer_id
        and p.epoch = place.epoch
        and p.partition = mod(place.partition, 100000000)
    order by p.read_to_seq desc
    limit 1;
    if slot.read_to_seq is null then
        slot := postbus_data.first_position(c, mod(place.partition, 100000000), c.start_after)
        from postbus_data.consumer as c
        where c.id = place.consumer_id;
    elsif slot.pending_bound = pending_bound and slot.leases is not distinct from leases and slot.pending_since is not distinct from pending_since then
        return;
    end if;
    slot.leases := leases;
    slot.pending_bound := pending_bound;
    slot.pending_since := pending_since;
    perform postbus_data.write_position(slot, slot.read_to_seq);
end
$$;

create or replace function postbus_data.segment_partitions(stream_id integer, partition_base integer, partition_count integer)
returns setof integer
language sql
stable
rows 32
as $$
/* The partitions of a segment, of all levels in use. */
    select lane + n
    from unnest(postbus_data.lanes(segment_partitions.stream_id)) as lane
    cross join generate_series(segment_partitions.partition_base, segment_partitions.partition_base + segment_partitions.partition_count - 1) as n
$$;

create or replace function postbus.priority_of(partition integer)
returns integer
language sql
immutable parallel safe
as $$
/* The priority of the messages of a partition: each level has partition numbers of its own, see lane_of. Written to be inlined. */
    select case when partition >= 500000000 then partition / 100000000 when partition >= 100000000 then partition / 100000000 - 1 else 4 end
$$;

create or replace function postbus_data.as_json(data text, place integer)
returns json
language plpgsql
immutable
as $$
/* The text as json, kept exactly; raises PB400 with the message's place in its batch when it is not JSON. */
begin
    return data::json;
exception when invalid_text_representation then
    raise exception using
        errcode = 'PB400',
        message = postbus_data.message_name(place) || ' is not valid JSON',
        detail = sqlerrm,
        hint = 'a string needs double quotes of its own: ''"hello"''';
end
$$;

create or replace function postbus_data.as_json_array(data text[])
returns json[]
language plpgsql
immutable
as $$
/* The texts as json, all at once. Only if that fails are they tried one by one, to name the invalid one. */
begin
    return data::json[];
exception when invalid_text_representation then
    perform postbus_data.as_json(u.item, u.place::integer)
    from unnest(data) with ordinality as u (item, place)
    order by u.place;
    raise;
end
$$;

create or replace function postbus_data.as_jsonb(data text)
returns jsonb
language plpgsql
immutable
as $$
/*
JSON in searchable form, or null where that is impossible: jsonb accepts no \u0000, no unpaired surrogates and not every number.
A message with such data passes no filter of its content. An error would block the consumer at this message.
*/
begin
    return data::jsonb;
exception
    when others then
        return null;
end
$$;

create or replace function postbus_data.check_batch(
    message_count integer,
    keys text[],
    data text[],
    headers jsonb[],
    bytes bytea[],
    dedup_ids text[],
    priorities integer[] default null
)
returns void
language plpgsql
immutable
as $$
/* Refuse a batch whose arrays differ in length, or that is too large (PB400, PB413). */
begin
    if message_count > 10000 then
        raise exception using
            errcode = 'PB413',
            message = format('a batch of %s messages is too large: at most 10000 are allowed', message_count),
            hint = 'publish in several batches; inside one transaction they are still all or nothing';
    end if;
    if cardinality(keys) <> message_count or cardinality(headers) <> message_count or cardinality(dedup_ids) <> message_count
        or cardinality(priorities) <> message_count
        or (data is not null and bytes is not null)
        or coalesce(array_ndims(keys), 1) + coalesce(array_ndims(data), 1)
            + coalesce(array_ndims(headers), 1) + coalesce(array_ndims(bytes), 1) > 4
    then
        raise exception using
            errcode = 'PB400',
            message = format(
                'the arrays of a batch do not run side by side: %s keys, %s data, %s bytes, %s headers, %s dedup ids%s',
                coalesce(cardinality(keys)::text, 'no'),
                coalesce(cardinality(data)::text, 'no'),
                coalesce(cardinality(bytes)::text, 'no'),
                coalesce(cardinality(headers)::text, 'no'),
                coalesce(cardinality(dedup_ids)::text, 'no'),
                ', ' || cardinality(priorities)::text || ' priorities'
            ),
            hint = 'give data (or, in a bytes stream, bytes) and leave out keys, headers, ids or priorities, or give one for each message';
    end if;
end
$$;

create or replace function postbus_data.check_messages(
    entry postbus_data.publish_target,
    message_count integer,
    keys text[],
    data text[],
    headers jsonb[],
    bytes bytea[],
    dedup_ids text[],
    priorities integer[] default null
)
returns json[]
language plpgsql
as $$
/*
Refuse a batch with a message that the stream does not accept: PB400 with the place and the reason, or PB413.

Returns  the data as JSON, if the stream holds JSON.
*/
begin
    perform postbus_data.check_batch(message_count, keys, data, headers, bytes, dedup_ids, priorities);
    if postbus_data.tokens_are_valid(array_to_string(keys, '.')) is false
        or (
            select max(length(m.key)) > 255
                or count(m.data) + count(m.bytes) < message_count
                or max(octet_length(m.data)) > entry.max_message_bytes
                or max(octet_length(m.bytes)) > entry.max_message_bytes
            from unnest(keys, data, bytes) as m (key, data, bytes)
        )
        or (entry.data_type = 'bytes') <> (data is null)
        or headers is not null
    then
        perform postbus_data.raise_invalid_message(entry, m.place::integer, m.key, m.data, m.header, m.bytes)
        from unnest(keys, data, headers, bytes) with ordinality as m (key, data, header, bytes, place)
        order by m.place;
    end if;
    return case when entry.data_type = 'json' then postbus_data.as_json_array(data) end;
end
$$;

create or replace function postbus_data.check_read(source postbus_data.stream, max_messages integer, key text, expected_type text)
returns void
language plpgsql
immutable
as $$
/* Refuse an invalid read: PB400 for arguments out of range, PB409 when the stream has another data type. */
begin
    if max_messages is null or max_messages not between 1 and 10000 then
        raise exception using
            errcode = 'PB400',
            message = format('max_messages = %s is not between 1 and 10000', coalesce(max_messages::text, 'null'));
    end if;
    if postbus_data.key_problem(key) is not null then
        raise exception using
            errcode = 'PB400',
            message = 'no message can have that key: ' || postbus_data.key_problem(key),
            hint = 'for "*" and ">" use key_pattern';
    end if;
    if expected_type <> source.data_type then
        raise exception using
            errcode = 'PB409',
            message = format('stream "%s" holds %s, not %s', source.name, source.data_type, expected_type);
    end if;
end
$$;

create or replace function postbus_data.check_ttl(ttl interval)
returns void
language plpgsql
immutable
as $$
/* Refuse a time to live that is out of range (PB400); null means none. */
begin
    if (ttl between interval '1 millisecond' and interval '3650 days') is false then
        raise exception using errcode = 'PB400', message = format('ttl = %s is not between 1 millisecond and 3650 days', ttl);
    end if;
end
$$;

create or replace function postbus_data.count_messages(
    stream_id integer,
    partitions integer[],
    after_seqs bigint[],
    condition text,
    reader postbus_data.consumer,
    out message_count bigint,
    out is_exact boolean,
    out oldest_at timestamptz
)
language plpgsql
stable
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
set search_path = pg_catalog, pg_temp
as $$
/*
How many messages a stream holds in these partitions, each above its seq. It counts up to 1,000 of them one by one; if there are more, it
estimates from the first messages of each partition, taking the rest to be as dense.

partitions  in ascending order, of one level or more; after_seqs has the seq for each.
condition   on l, a row of the log, which may name the reader as $4.

Returns  is_exact: they were all counted. oldest_at: when the oldest of those that it looked at was published.

Stable, so all its statements have the snapshot of the query that calls it, and the messages count as they were at one moment. It looks at
no more than 1,001 messages to count, and at about 1,000 more to estimate, however many there are.
*/
#variable_conflict use_variable
declare
    most constant integer := 1000;
    source constant text := 'from unnest($1, $2) with ordinality as p (partition, after_seq, place)
        cross join lateral (
            select l.seq, l.key, l.headers, l.published_at, l.expires_at
            from %s as l
            where l.partition = p.partition
                and l.seq > p.after_seq
            order by l.seq';
    newest_seq bigint := pg_sequence_last_value(to_regclass('postbus_data.seq_' || stream_id));
    lowest_seq bigint := (select min(a) from unnest(after_seqs) as a);
    segment record;
    looked_at bigint := 0;
    here record;
    per_partition integer;
    found_in double precision[];
    estimate double precision := 0;
    reached_seq bigint;
begin
    message_count := 0;
    is_exact := true;
    for segment in
        select postbus_data.log_table(g.stream_id, g.number) as log
        from postbus_data.segment as g
        where g.stream_id = stream_id
            and g.partition_base >= mod(partitions[1], 100000000)
            and (g.sealed_at is null or g.last_seq > lowest_seq)
        order by g.number
    loop
        begin
            execute format(
                'select count(*) as seen, count(*) filter (where m.is_wanted) as wanted, min(m.published_at) filter (where m.is_wanted) as oldest
                from (select %s as is_wanted, l.published_at ' || source || ') as l limit $3) as m',
                condition,
                segment.log
            )
            into here
            using partitions, after_seqs, most + 1 - looked_at, reader;
        exception when undefined_table then
            -- It was dropped since: its messages are gone.
            continue;
        end;
        looked_at := looked_at + here.seen;
        message_count := message_count + here.wanted;
        oldest_at := least(oldest_at, here.oldest);
        is_exact := looked_at <= most;
        exit when not is_exact;
    end loop;
    if is_exact then
        return;
    end if;

    looked_at := 0;
    per_partition := greatest(8, most / cardinality(partitions));
    found_in := array_fill(0::float8, array[cardinality(partitions)]);
    for segment in
        select
            postbus_data.log_table(g.stream_id, g.number) as log, g.after_seq, coalesce(g.last_seq, g.rolled_at_seq, newest_seq) as last_seq,
            max(coalesce(g.last_seq, g.rolled_at_seq, newest_seq)) over (partition by g.partition_base) as end_seq
        from postbus_data.segment as g
        where g.stream_id = stream_id
            and g.partition_base >= mod(partitions[1], 100000000)
            and (g.sealed_at is null or g.last_seq > lowest_seq)
        order by g.number
    loop
        begin
            for here in execute format(
                'select p.place, p.after_seq, s.*
                from unnest($1, $2) with ordinality as p (partition, after_seq, place)
                cross join lateral (
                    select count(*) as seen, count(*) filter (where m.is_wanted) as wanted, max(m.seq) as last_seq,
                        min(m.published_at) filter (where m.is_wanted) as oldest
                    from (
                        select %s as is_wanted, l.seq, l.published_at
                        from (
                            select l.seq, l.key, l.headers, l.published_at, l.expires_at
                            from %s as l
                            where l.partition = p.partition
                                and l.seq > p.after_seq
                            order by l.seq
                            limit $3
                        ) as l
                    ) as m
                ) as s
                where s.seen > 0',
                condition,
                segment.log
            ) using partitions, after_seqs, per_partition, reader
            loop
                looked_at := looked_at + here.seen;
                oldest_at := least(oldest_at, here.oldest);
                if here.seen < per_partition then
                    found_in[here.place] := found_in[here.place] + here.wanted;
                else
                    estimate := estimate + found_in[here.place] + here.wanted * greatest(
                        1.0,
                        (segment.end_seq - greatest(here.after_seq, segment.after_seq))::float8
                        / (here.last_seq - greatest(here.after_seq, segment.after_seq))
                    );
                    found_in[here.place] := 0;
                    partitions[here.place] := null;
                end if;
            end loop;
        exception when undefined_table then
            continue;
        end;
        reached_seq := segment.last_seq;
        -- Many small segments: what follows is like what was seen.
        exit when looked_at > 4 * most or cardinality(array_remove(partitions, null)) = 0;
    end loop;
    estimate := estimate + (select sum(f) from unnest(found_in) as f)
        * greatest(1.0, (newest_seq - lowest_seq)::float8 / greatest(1, reached_seq - lowest_seq));
    -- Each has a seq of its own.
    message_count := greatest(message_count, least(round(estimate)::bigint, newest_seq - lowest_seq), 1);
end
$$;

create or replace function postbus_data.create_publish_functions(stream_id integer)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
/*
Write the functions postbus_data.publish_<stream id> and postbus_data.publish_many_<stream id>, which publish to one stream as postbus.publish and
postbus.publish_many do.

They know the stream's table, partitions and limits, so their inserts are planned once for a session instead of at each call
(docs/decisions/0003). Whatever they do not know or like, a layout that has moved on or a message that is not allowed, they
leave to postbus.publish and publish_many. Written anew when the stream is created or altered and when a new segment is begun; a caller
that still has the last ones is served by that rule. They run with the rights of their owner, and ask
nobody: who may call them is a matter of grants, see apply_grants.

A transaction without an id has published nothing, so it takes the lock of lock_horizon without looking for what it holds, and without noting it: the
library calls these in transactions of their own, where no other publish follows. One that does takes another lock, and notes that.

Touches  stream (locks the row, so that two writers do not meet).
*/
declare
    stream postbus_data.stream;
    is_bytes boolean;
    names jsonb;
    layout bigint := pg_sequence_last_value(to_regclass('postbus_data.layout_' || stream_id));
begin
    select s.* into stream from postbus_data.stream as s where s.id = stream_id for update;
    is_bytes := stream.data_type = 'bytes';
    names := jsonb_build_object(
        'stream_id', stream.id,
        'stream_name', quote_literal(stream.name),
        'log_table', postbus_data.log_table(stream.id, postbus_data.layout_segment(layout)),
        'layout', layout,
        'partition_base', postbus_data.layout_base(layout),
        'partition_count', postbus_data.layout_count(layout),
        'max_message_bytes', stream.max_message_bytes,
        'lock_class', postbus_data.publisher_lock_class(stream.id),
        'is_refused', stream.is_full or stream.one_message_per_key,
        'data_type', case when is_bytes then 'bytea' else 'text' end,
        'data_argument', case when is_bytes then 'bytes' else 'data' end,
        'content', case stream.data_type when 'json' then 'data::json' else 'data' end,
        'contents', case stream.data_type when 'json' then 'm.data::json' else 'm.data' end
    );
    -- A message of a stream with channels has a key.
    execute postbus_data.render(
        postbus_data.publish_template(),
        jsonb_build_object('channel', postbus_data.channel_expression('key', stream.channel_tokens))
        || names
        || case when stream.channel_tokens is not null and not (names -> 'is_refused')::boolean then '{"is_refused": "key is null"}' else '{}'::jsonb end
    );
    execute postbus_data.render(
        postbus_data.publish_many_template(),
        jsonb_build_object('channel', postbus_data.channel_expression('u.key', stream.channel_tokens))
        || names
        || case
            when stream.channel_tokens is not null and not (names -> 'is_refused')::boolean then '{"is_refused": "array_position(keys, null) is not null"}'
            else '{}'::jsonb
        end
    );
end
$$;

create or replace function postbus_data.draw_seqs(entry postbus_data.publish_target, message_count integer, out seqs bigint[], out layout bigint)
language plpgsql
volatile
as $$
/*
Draw the seqs of some messages, and say where to write them: the layout was the same before and after they were drawn. So all
messages of an older layout have lower seqs than those of a newer one, and the messages of a key, which are read in this order,
stay in the order of their seqs.
*/
declare
    sequence regclass := entry.sequence;
    register regclass := to_regclass('postbus_data.layout_' || entry.stream_id::text);
begin
    layout := entry.layout;
    loop
        select array_agg(nextval(sequence)) into seqs from generate_series(1, message_count);
        exit when layout = pg_sequence_last_value(register);
        layout := pg_sequence_last_value(register);
    end loop;
end
$$;

create or replace function postbus_data.find_message(stream_id integer, seq bigint)
returns postbus.delivery
language plpgsql
volatile
set enable_seqscan = off
set enable_bitmapscan = off
as $$
/*
The message with this seq, from the log or from what is kept of dropped segments; null if there is none. It may be above the horizon. It
takes one index probe for each partition.
*/
#variable_conflict use_variable
declare
    segment record;
    message postbus.delivery;
    lanes integer[] := postbus_data.lanes(stream_id);
begin
    for segment in
        select g.number, g.partition_base, g.partition_count, s.data_type = 'bytes' as has_bytes
        from postbus_data.segment as g
        join postbus_data.stream as s on s.id = g.stream_id
        where g.stream_id = stream_id
            and g.after_seq < seq
            and (g.sealed_at is null or g.last_seq >= seq)
    loop
        execute format(
            'select null::text, null::integer, l.seq, l.partition, l.key, %s, l.headers, l.published_at
            from postbus_data.log_%s_%s as l
            where l.partition = any (array(select u.lane + n from unnest($1) as u (lane) cross join generate_series($2, $3) as n)) and l.seq = $4',
            case when segment.has_bytes then 'null::text, l.data' else 'l.data::text, null::bytea' end,
            stream_id,
            segment.number
        )
        into message
        using lanes, segment.partition_base, segment.partition_base + segment.partition_count - 1, seq;
        exit when message.seq is not null;
    end loop;
    if message.seq is null then
        select null::text, null::integer, k.seq, k.partition, k.key, k.data, k.bytes, k.headers, k.published_at
        into message
        from (
            with recursive p (n) as (
                select min(k.partition) from postbus_data.kept as k where k.stream_id = stream_id
                union all
                select (select min(k.partition) from postbus_data.kept as k where k.stream_id = stream_id and k.partition > p.n)
                from p
                where p.n is not null
            )
            select p.n from p
        ) as p
        cross join lateral (
            select k.* from postbus_data.kept as k where k.stream_id = stream_id and k.partition = p.n and k.seq = seq
        ) as k;
    end if;
    return message;
end
$$;

create or replace function postbus_data.insert_messages(
    entry postbus_data.publish_target,
    published_at timestamptz,
    ttl interval,
    seqs bigint[],
    keys text[],
    contents json[],
    data text[],
    headers jsonb[],
    bytes bytea[],
    hashes integer[] default null,
    priorities integer[] default null
)
returns void
language plpgsql
as $$
/*
Insert checked messages, with seqs drawn for the layout that entry names. Their data is in contents, data or bytes, as the
stream holds JSON, text or bytes. hashes are those of the keys, if they are known. A priority may be null.
*/
begin
    -- partition_of is written out: a call of it per message would cost more than the insert of its row. The arrays are taken
    -- apart side by side in a target list: unnest of several in FROM would store them all first.
    execute format(
        'insert into postbus_data.log_%s_%s (seq, published_at, partition, key, data, headers, expires_at)
        select
            m.seq,
            $1,
            %s$2 + coalesce(mod(%s, $3), mod(m.seq, $3::bigint)::integer),
            m.key,
            m.data,
            m.headers,
            $1 + $10
        from (
            select u.*, %s as hash
            from (select unnest($4) as seq, unnest($5) as key, unnest($6) as headers, unnest(%s) as data, unnest($11) as known%s) as u
            offset 0
        ) as m',
        entry.stream_id,
        postbus_data.layout_segment(entry.layout),
        case when priorities is not null then 'postbus_data.lane_of(coalesce(m.priority, 4)) + ' else '' end,
        case
            when hashes is null then '(get_byte(m.hash, 0) << 16) | (get_byte(m.hash, 1) << 8) | get_byte(m.hash, 2)'
            else 'm.known'
        end,
        case
            when hashes is null then format('sha256(convert_to(%s, ''UTF8''::name))', postbus_data.channel_expression('u.key', entry.channel_tokens))
            else 'null'
        end,
        case entry.data_type when 'json' then '$7' when 'text' then '$8' else '$9' end,
        case when priorities is not null then ', unnest($12) as priority' else '' end
    ) using
        published_at,
        postbus_data.layout_base(entry.layout),
        postbus_data.layout_count(entry.layout),
        seqs, keys, headers, contents, data, bytes, ttl, hashes, priorities;
    if priorities is not null then
        perform postbus_data.note_levels(entry.stream_id, array(select distinct p from unnest(priorities) as p where p <> 4), (select min(s) from unnest(seqs) as s));
    end if;
end
$$;

create or replace function postbus_data.merge_answers(answers bigint[], seqs bigint[])
returns bigint[]
language sql
immutable
as $$
/* The result of a publish for each message: answers, with seqs in place of the nulls, in their order. */
    select array_agg(
        case when a.answer is null then seqs[a.nth] else a.answer end order by a.place
    )
    from (
        select a.answer, a.place, count(*) filter (where a.answer is null) over (order by a.place) as nth
        from unnest(answers) with ordinality as a (answer, place)
    ) as a
$$;

create or replace function postbus_data.message_name(place integer)
returns text
language sql
immutable parallel safe
as $$
/* What errors call a message: its place in the batch, counted from 1, or just "message". */
    select coalesce('message ' || place::text, 'message')
$$;

create or replace function postbus_data.parse_resume(resume text, stream_id integer, backwards boolean)
returns bigint
language plpgsql
immutable
as $$
/* The position in a resume token of read. Raises PB400 for an invalid token, or one of another stream or direction. */
declare
    direction text := case when backwards then 'b' else 'f' end;
begin
    if resume !~ '^[fb]:[0-9]{1,9}:[0-9]{1,18}$' then
        raise exception using errcode = 'PB400', message = format('"%s" is not a resume token', left(resume, 80));
    end if;
    if split_part(resume, ':', 2)::integer <> stream_id then
        raise exception using errcode = 'PB400', message = 'the resume token belongs to another stream';
    end if;
    if split_part(resume, ':', 1) <> direction then
        raise exception using
            errcode = 'PB400',
            message = 'the resume token belongs to a read in the other direction';
    end if;
    return split_part(resume, ':', 3)::bigint;
end
$$;

create or replace function postbus_data.raise_invalid_message(
    entry postbus_data.publish_target,
    place integer,
    key text,
    data text,
    headers jsonb,
    bytes bytea
)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
/*
Raise the error for an invalid message, or return if it is valid.

The publishing functions do a cheap check of their own and call this only to name the message and the reason.
*/
declare
    name text := postbus_data.message_name(place);
    size integer := octet_length(coalesce(bytes, convert_to(data, 'UTF8')));
    problem text := postbus_data.key_problem(key);
begin
    if size > entry.max_message_bytes then
        raise exception using
            errcode = 'PB413',
            message = format('%s has %s bytes of data, and the stream allows %s', name, size, entry.max_message_bytes),
            hint = 'raise max_message_bytes of the stream, or store the content elsewhere and send a reference';
    end if;
    problem := case
        when problem is not null then problem
        when entry.data_type = 'bytes' and data is not null then 'it has text data, and the stream holds bytes'
        when entry.data_type <> 'bytes' and bytes is not null then 'it has bytes, and the stream holds ' || entry.data_type
        when data is null and bytes is null then case entry.data_type
            when 'json' then 'its data is missing (JSON null is written ''null'')'
            else 'its data is missing'
        end
        when jsonb_typeof(headers) <> 'object' then 'its headers are not a JSON object'
        when headers @? 'strict $.* ? (@.type() != "string")' then 'a header''s value is not a string'
    end;
    if problem is not null then
        raise exception using errcode = 'PB400', message = format('%s is not allowed: %s', name, problem);
    end if;
end
$$;

create or replace function postbus_data.read_window(
    source postbus_data.stream,
    after_seq bigint,
    to_seq bigint,
    filter postbus_data.read_filter,
    max_messages integer,
    backwards boolean
)
returns setof postbus.message
language plpgsql
volatile
as $$
/*
The messages with after_seq < seq <= to_seq that pass the filter, in order, at most max_messages of them.

The bounds limit the work: one index range per partition in each segment that may hold such seqs, usually one. If a segment is
dropped between listing and reading, its messages had been purged, and the segments are listed again.
*/
declare
    statement text;
begin
    for attempt in 1 .. 3 loop
        begin
            statement := postbus_data.window_statement(source, after_seq, to_seq, filter, max_messages, backwards);
            if statement is not null then
                return query execute statement
                using after_seq, to_seq, filter.key, filter.key_regex, filter.from_time, filter.to_time;
            end if;
            return;
        exception when undefined_table then
            if attempt = 3 then
                raise;
            end if;
        end;
    end loop;
end
$$;

create or replace function postbus_data.skip_duplicates(entry postbus_data.publish_target, batch postbus_data.publish_batch, is_scheduled boolean)
returns postbus_data.publish_batch
language plpgsql
volatile
as $$
/*
Find the messages of a batch to publish: not those whose id was published before and, in a stream with one message per key, only
the last one of each key, if its data has changed.

Returns  the remaining messages, with their seqs, and answers for the others; seqs is null when none remains.
Raises   PB400, as deduplicate, and for a message without a key where keys are needed.
Touches  the stream's tables of ids, the state of its keys (insert, update).
Locks    keys, then ids, each in their order: publishers of the same key or id wait for each other, and nobody else does. Seqs
         are drawn after the keys are locked, so that a later version has a higher one.
*/
declare
    is_versioned boolean := entry.one_message_per_key and is_scheduled is not true;
    message_count integer := coalesce(cardinality(batch.data), cardinality(batch.bytes));
    firsts bigint[];
    chosen integer[];
begin
    if entry.one_message_per_key and (batch.keys is null or array_position(batch.keys, null) is not null) then
        raise exception using
            errcode = 'PB400',
            message = format('%s is not allowed: the stream keeps one message per key, and this message has no key', postbus_data.message_name(
                case when message_count > 1 then coalesce(array_position(batch.keys, null), 1) end
            ));
    end if;
    if is_versioned then
        perform postbus_data.lock_keys(entry.stream_id, batch.keys);
    end if;
    if is_scheduled then
        batch.seqs := array_fill(0::bigint, array[message_count]);
    else
        select d.seqs, d.layout into batch.seqs, entry.layout from postbus_data.draw_seqs(entry, message_count) as d;
        batch.layout := entry.layout;
    end if;
    batch.published_at := clock_timestamp();
    if batch.dedup_ids is not null then
        firsts := postbus_data.deduplicate(entry.stream_id, batch.dedup_ids, batch.seqs);
        select array_agg(-f.seq order by f.place) into batch.answers from unnest(firsts) with ordinality as f (seq, place);
    else
        batch.answers := array_fill(null::bigint, array[message_count]);
    end if;
    if is_versioned then
        batch.answers := postbus_data.replace_versions(entry, batch);
    end if;

    select array_agg(a.place order by a.place) into chosen
    from unnest(batch.answers) with ordinality as a (answer, place)
    where a.answer is null;
    if chosen is null then
        batch.seqs := null;
    elsif cardinality(chosen) < message_count then
        select
            array_agg(batch.keys[c] order by c), array_agg(batch.data[c] order by c), array_agg(batch.contents[c] order by c),
            array_agg(batch.headers[c] order by c), array_agg(batch.bytes[c] order by c), array_agg(batch.seqs[c] order by c),
            case when batch.priorities is not null then array_agg(batch.priorities[c] order by c) end
        into batch.keys, batch.data, batch.contents, batch.headers, batch.bytes, batch.seqs, batch.priorities
        from unnest(chosen) as c;
    end if;
    return batch;
end
$$;

create or replace function postbus_data.window_statement(
    source postbus_data.stream,
    after_seq bigint,
    to_seq bigint,
    filter postbus_data.read_filter,
    max_messages integer,
    backwards boolean
)
returns text
language sql
volatile
as $$
/* The statement that read_window executes; null when no segment holds such seqs. */
    select string_agg(
        format(
            'select m.seq, m.partition, m.key, %s, %s, m.headers, m.published_at, null::text, postbus.priority_of(m.partition)
            from unnest(%L::integer[]) as p (n)
            cross join lateral (
                select l.* from %s as l where l.partition = p.n and l.seq > $1 and l.seq <= $2 offset 0
            ) as m
            where ($3 is null or m.key = $3)
                and ($4 is null or m.key ~ $4)
                and ($5 is null or m.published_at >= $5)
                and ($6 is null or m.published_at < $6)',
            case when source.data_type = 'bytes' then 'null::text' else 'm.data::text' end,
            case when source.data_type = 'bytes' then 'm.data' else 'null::bytea' end,
            part.partitions,
            postbus_data.log_table(g.stream_id, g.number)
        ),
        ' union all '
        order by g.number
    ) || ' order by 1' || case when backwards then ' desc' else '' end || ' limit ' || max_messages
    from postbus_data.segment as g
    cross join lateral (
        select array_agg(p.n) as partitions
        from postbus_data.segment_partitions(g.stream_id, g.partition_base, g.partition_count) as p (n)
        where (filter.partition is null or p.n = filter.partition)
            and (
                filter.partition is not null
                or filter.key is null
                or mod(p.n, 100000000) = g.partition_base + postbus.partition_of(coalesce(postbus_data.channel_of(filter.key, source.channel_tokens), filter.key), g.partition_count)
            )
    ) as part
    where g.stream_id = source.id
        and g.after_seq < to_seq
        and (g.last_seq > window_statement.after_seq or g.sealed_at is null)
        and part.partitions is not null
$$;

create or replace function postbus.publish(
    stream text,
    key text default null,
    data text default null,
    headers jsonb default null,
    bytes bytea default null,
    expected_type text default null,
    ttl interval default null,
    deliver_at timestamptz default null,
    dedup_id text default null,
    priority integer default null,
    caller postbus.caller default postbus.current_caller()
)
returns bigint
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Publish one message to a stream, in the caller's transaction.

key            decides the message's partition, and so its order; null: any partition. In a stream with channels it also names the channel.
data, bytes    the content: data in a json or text stream, bytes in a bytes stream. Data may also be of type json or jsonb.
headers        a JSON object of strings.
expected_type  raise PB409 if the stream has another data type; null accepts any.
ttl            how long the message lives after it is published: later, consumers skip it or make it a dead letter.
deliver_at     keep the message outside the log until this time; null or a past time publishes it now.
priority       0 to 9, higher first; null means 4. A message of a higher level may overtake others, also those of its key.
dedup_id       a name for the message: if it was published within the stream's dedup_window, it is not published again.

Returns  the message's seq, or with deliver_at its schedule id. For a duplicate, the negated seq of the message published before
         (0 if that one was scheduled). The same in a stream with one message per key, when the data equals that of the current
         version.
Raises   PB400 with the reason for an invalid message (in a stream with channels: also without a key, or with a priority), PB403 without the right to publish, PB404 for an unknown stream, PB409
         for another data type, a dedup_id where the stream has no dedup_window, or another priority than 4 where a consumer reads in
         order "partition", PB413 when the message is too large, PB503
         when another application holds a lock that the stream needs, PB507 when the stream is full.
Touches  the current segment of the stream (insert), or scheduled (insert); level (insert) when a priority is used first.
Locks    the horizon of the stream, shared, until the transaction ends. Publishers do not wait for each other, except those of the
         same dedup_id, or of the same key in a stream with one message per key.

Hot: the table's name is dynamic, so the insert is planned at each call. A bare VALUES with a seq drawn beforehand keeps that at
20 µs (docs/decisions/0003).
*/
#variable_conflict use_variable
declare
    entry postbus_data.publish_target := postbus_data.begin_publish(stream, expected_type, caller);
    place text := 'insert into postbus_data.log_' || entry.stream_id::text || '_' || postbus_data.layout_segment(entry.layout)::text
        || ' (seq, published_at, partition, key, data, headers, expires_at) values ($1, $2, $3, $4, $5, $6, $7)';
    partition_count integer := postbus_data.layout_count(entry.layout);
    -- partition_of, inlined by hand: a call of it costs as much as the insert.
    hash bytea := sha256(convert_to(case when entry.channel_tokens is null then key else postbus_data.channel_of(key, entry.channel_tokens) end, 'UTF8'::name));
    partition integer := mod((get_byte(hash, 0) << 16) | (get_byte(hash, 1) << 8) | get_byte(hash, 2), partition_count);
    content json;
    seq bigint;
begin
    if (length(key) <= 255 and postbus_data.tokens_are_valid(key)) is false
        or headers is not null
        or (entry.data_type = 'bytes' and (bytes is null or data is not null))
        or (entry.data_type <> 'bytes' and (data is null or bytes is not null))
        or octet_length(data) > entry.max_message_bytes
        or octet_length(bytes) > entry.max_message_bytes
    then
        perform postbus_data.raise_invalid_message(entry, null, key, data, headers, bytes);
    end if;

    if entry.channel_tokens is not null then
        perform postbus_data.check_channels(entry, array[key], array[priority], false);
    end if;
    if dedup_id is not null or entry.one_message_per_key then
        return (
            postbus.publish_many(
                stream, array[key], case when data is not null then array[data] end, case when headers is not null then array[headers] end,
                case when bytes is not null then array[bytes] end, expected_type, ttl, deliver_at,
                case when dedup_id is not null then array[dedup_id] end, case when priority is not null then array[priority] end, caller
            )
        )[1];
    end if;
    if ttl is not null or deliver_at is not null or priority is not null then
        perform postbus_data.check_ttl(ttl);
        perform postbus_data.check_priorities(array[priority], false);
        if deliver_at > clock_timestamp() then
            return postbus_data.schedule(entry, null, deliver_at, ttl, key, data, headers, bytes, priority);
        end if;
    end if;
    if entry.data_type = 'json' then
        content := postbus_data.as_json(data, null);
    end if;
    -- Take seq and time together: with a time older than its seq, readers by time would miss the message.
    seq := nextval(entry.sequence);
    if pg_sequence_last_value(to_regclass('postbus_data.layout_' || entry.stream_id::text)) <> entry.layout then
        -- Others may have published to a new layout with lower seqs. Readers finish the old layout first, so this message must
        -- not go there.
        return postbus.publish(stream, key, data, headers, bytes, expected_type, ttl, priority => priority, caller => caller);
    end if;
    partition := postbus_data.layout_base(entry.layout)
        + coalesce(partition, mod(seq, partition_count::bigint)::integer);
    if priority <> 4 then
        partition := postbus_data.lane_of(priority) + partition;
        perform postbus_data.note_levels(entry.stream_id, array[priority], seq);
    end if;
    if entry.data_type = 'json' then
        execute place using seq, clock_timestamp(), partition, key, content, headers, clock_timestamp() + ttl;
    elsif entry.data_type = 'text' then
        execute place using seq, clock_timestamp(), partition, key, data, headers, clock_timestamp() + ttl;
    else
        execute place using seq, clock_timestamp(), partition, key, bytes, headers, clock_timestamp() + ttl;
    end if;
    return seq;
end
$$;

create or replace function postbus.publish(
    stream text,
    key text default null,
    data json default null,
    headers jsonb default null,
    expected_type text default null,
    ttl interval default null,
    deliver_at timestamptz default null,
    dedup_id text default null,
    priority integer default null,
    caller postbus.caller default postbus.current_caller()
)
returns bigint
language sql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Publish one message whose data is of type json. All else is as in the form that takes text, which untyped literals choose.

Returns, raises, touches, locks  as publish of text does.
*/
    select postbus.publish(stream, key, data::text, headers, null::bytea, expected_type, ttl, deliver_at, dedup_id, priority, caller)
$$;

create or replace function postbus.publish(
    stream text,
    key text default null,
    data jsonb default null,
    headers jsonb default null,
    expected_type text default null,
    ttl interval default null,
    deliver_at timestamptz default null,
    dedup_id text default null,
    priority integer default null,
    caller postbus.caller default postbus.current_caller()
)
returns bigint
language sql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Publish one message whose data is of type jsonb. All else is as in the form that takes text, which untyped literals choose.

Returns, raises, touches, locks  as publish of text does.
*/
    select postbus.publish(stream, key, data::text, headers, null::bytea, expected_type, ttl, deliver_at, dedup_id, priority, caller)
$$;

create or replace function postbus.publish_many(
    stream text,
    keys text[] default null,
    data text[] default null,
    headers jsonb[] default null,
    bytes bytea[] default null,
    expected_type text default null,
    ttl interval default null,
    deliver_at timestamptz default null,
    dedup_ids text[] default null,
    priorities integer[] default null,
    caller postbus.caller default postbus.current_caller()
)
returns bigint[]
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Publish at most 10,000 messages to a stream, all or none, in order, in the caller's transaction.

The arrays are parallel: message n is keys[n], data[n] (bytes[n] in a bytes stream) and headers[n]. Keys, headers, dedup_ids
and priorities may be omitted, or be null for some messages. See publish for what a message may hold; ttl and deliver_at apply to all of them.

Returns  the messages' seqs, in order, or with deliver_at their schedule ids; an empty array for no messages. For duplicates and
         unchanged versions see publish.
Raises   as publish; PB400 and PB413 name the message's place in the batch. PB413 also for more than 10,000 messages.
Touches  as publish.
Locks    as publish.
*/
#variable_conflict use_variable
declare
    entry postbus_data.publish_target := postbus_data.begin_publish(stream, expected_type, caller);
    message_count integer := coalesce(cardinality(data), cardinality(bytes), 0);
    contents json[];
    seqs bigint[];
    fresh postbus_data.publish_batch;
begin
    if message_count = 0 then
        perform postbus_data.check_batch(0, keys, data, headers, bytes, dedup_ids, priorities);
        return '{}';
    end if;
    contents := postbus_data.check_messages(entry, message_count, keys, data, headers, bytes, dedup_ids, priorities);
    if entry.channel_tokens is not null then
        perform postbus_data.check_channels(entry, keys, priorities, true);
    end if;
    perform postbus_data.check_ttl(ttl);
    if priorities is not null then
        perform postbus_data.check_priorities(priorities, true);
    end if;
    if dedup_ids is not null or entry.one_message_per_key then
        fresh := postbus_data.skip_duplicates(entry, row(keys, data, contents, headers, bytes, dedup_ids, null, null, null, null, priorities), deliver_at > clock_timestamp());
        if fresh.seqs is null then
            return fresh.answers;
        end if;
        keys := fresh.keys;
        data := fresh.data;
        contents := fresh.contents;
        headers := fresh.headers;
        bytes := fresh.bytes;
        priorities := fresh.priorities;
        seqs := fresh.seqs;
    end if;
    if deliver_at > clock_timestamp() then
        select array_agg(
            postbus_data.schedule(entry, m.place::integer, deliver_at, ttl, m.key, m.data, m.header, m.bytes, m.priority) order by m.place
        )
        into seqs
        from unnest(keys, data, headers, bytes, priorities) with ordinality as m (key, data, header, bytes, priority, place);
        return case when fresh.answers is null then seqs else postbus_data.merge_answers(fresh.answers, seqs) end;
    end if;

    if seqs is null then
        select d.seqs, d.layout into seqs, entry.layout from postbus_data.draw_seqs(entry, message_count) as d;
    else
        entry.layout := fresh.layout;
    end if;
    perform postbus_data.insert_messages(
        entry, coalesce(fresh.published_at, clock_timestamp()), ttl, seqs, keys, contents, data, headers, bytes, priorities => priorities
    );
    return case when fresh.answers is null then seqs else postbus_data.merge_answers(fresh.answers, seqs) end;
end
$$;

create or replace function postbus.purge(
    stream text,
    before_seq bigint default null,
    before_time timestamptz default null,
    everything boolean default false
)
returns bigint
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Remove the messages below a seq, those published before a time (the last second before it may stay), or everything up to the
horizon.

Readers no longer see them from now on. Maintenance frees their space when it drops the segments that hold nothing else.

Returns  the stream's new start: messages below this seq are gone. It never moves back.
Raises   PB400 unless exactly one of the three is given, PB404 for an unknown stream, PB412 outside READ COMMITTED, PB503 on a
         standby.
Touches  stream (update).
*/
declare
    purged integer := postbus_data.stream_id(stream);
    horizon bigint := postbus_data.horizon_of(purged);
    new_start bigint;
begin
    if num_nonnulls(before_seq, before_time, nullif(everything, false)) <> 1 then
        raise exception using
            errcode = 'PB400',
            message = 'purge needs to know what to remove',
            constraint = 'which_messages',
            hint = 'give exactly one of before_seq, before_time, everything => true';
    end if;
    new_start := least(
        horizon + 1,
        case
            when before_time is not null then postbus_data.seq_before(purged, before_time - interval '1 second') + 1
            when before_seq is not null then before_seq
        end
    );
    update postbus_data.stream as s set purged_seq = greatest(s.purged_seq, new_start) where s.id = purged;
    return postbus_data.move_start(purged, new_start);
end
$$;

create or replace function postbus.read(
    stream text,
    from_seq bigint default null,
    to_seq bigint default null,
    from_time timestamptz default null,
    to_time timestamptz default null,
    key text default null,
    key_pattern text default null,
    partition integer default null,
    max_messages integer default 100,
    backwards boolean default false,
    resume text default null,
    expected_type text default null,
    caller postbus.caller default postbus.current_caller()
)
returns setof postbus.message
language plpgsql
volatile
security definer
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_material = off
set jit = off
set search_path = pg_catalog, pg_temp
as $$
/*
A page of a stream's messages, in order of seq, or newest first with backwards. Reading changes nothing.

from_seq, to_seq      both inclusive.
from_time, to_time    from_time <= published_at < to_time.
key, key_pattern      only messages with this key, or with keys that match ("*" is one token, ">" one or more at the end).
max_messages          1 to 10,000.
resume                the page after the one that ended with this token.

A page examines at most 100,000 seqs, however rare the key. The last row carries the resume token for the next page; when a page
has come far but found nothing, its only row is empty except for the token. No rows at all mean the end. Reading forwards, the
last token stays valid for messages published later.

Raises   PB400 for an invalid argument, PB403 without the right to consume or read, PB404 for an unknown stream, PB409 when
         expected_type is not the stream's, PB412 outside READ COMMITTED, PB503 on a standby.
*/
#variable_conflict use_variable
declare
    source postbus_data.stream;
    low bigint;
    high bigint;
    edge bigint;
    neighbour bigint;
    budget bigint := 100000;
    width bigint;
    remaining integer := max_messages;
    filter postbus_data.read_filter := row(key, postbus_data.pattern_regex(key_pattern), partition, from_time, to_time);
    found_message postbus.message;
    pending postbus.message;
begin
    select s.* into source from postbus_data.stream as s where s.id = postbus_data.permitted_stream(caller, stream, 'consume', 'read');
    perform postbus_data.check_read(source, max_messages, key, expected_type);
    high := least(postbus_data.horizon_of(source.id), to_seq);
    low := greatest(source.start_seq, from_seq, 1) - 1;
    if resume is not null then
        edge := postbus_data.parse_resume(resume, source.id, backwards);
        if edge > postbus_data.sequence_value('postbus_data.seq_' || source.id::text) then
            raise exception using
                errcode = 'PB409',
                message = 'the resume token is beyond the end of the stream: messages were lost in a crash, a failover or a restore',
                hint = 'continue from a seq or a time';
        end if;
        if backwards then high := least(high, edge); else low := greatest(low, edge); end if;
    end if;
    -- Times and seqs may disagree by a moment: look a second further, and compare the times themselves.
    if from_time is not null then
        low := greatest(low, postbus_data.seq_before(source.id, greatest(from_time, '2000-01-01') - interval '1 second'));
    end if;
    if to_time is not null then
        high := least(high, postbus_data.seq_since(source.id, least(to_time, '290000-01-01') + interval '1 second'));
    end if;

    width := case when filter is null then greatest(max_messages, 100) else 10000 end;
    edge := case when backwards then high else low end;
    while remaining > 0 and budget > 0 and low < high loop
        for found_message in
            select m.*
            from postbus_data.read_window(
                source,
                case when backwards then greatest(high - width, low) else low end,
                case when backwards then high else least(low + width, high) end,
                filter, remaining, backwards
            ) as m
        loop
            if pending.seq is not null then
                return next pending;
            end if;
            pending := found_message;
            remaining := remaining - 1;
        end loop;
        budget := budget - width;
        -- Go on from the last message when the page is full, else from the next one beyond the window: a bound that is no
        -- message's seq may, after a crash, be given to a new message, and a token there would skip it.
        if backwards then
            if remaining = 0 then
                high := pending.seq - 1;
            else
                high := greatest(low, postbus_data.previous_seq(source.id, greatest(high - width, low)));
            end if;
        elsif remaining = 0 then
            low := pending.seq;
        else
            neighbour := postbus_data.next_seq(source.id, least(low + width, high));
            if neighbour <= high then
                low := neighbour - 1;
            else
                low := greatest(low, postbus_data.previous_seq(source.id, high));
                exit;
            end if;
        end if;
    end loop;

    if pending.seq is not null or (backwards and low < high and high < edge) or (not backwards and low > edge) then
        pending.resume := format(
            '%s:%s:%s', case when backwards then 'b' else 'f' end, source.id, case when backwards then high else low end
        );
        return next pending;
    end if;
end
$$;

create or replace function postbus_data.begin_pipeline(name text, kind text, stream text, consumer text, options jsonb)
returns uuid
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
/*
Record that a run of a pipeline begins. It replaces an earlier run, even one that is still alive.

Returns  the run's id, which note_pipeline and end_pipeline take.
Raises   PB404 for an unknown stream.
*/
    insert into postbus_data.pipeline as p (name, kind, stream_id, consumer, options, state, run)
    values (name, kind, postbus_data.stream_id(stream), consumer, options, 'running', gen_random_uuid())
    on conflict on constraint pipeline_pkey do update
    set kind = excluded.kind,
        stream_id = excluded.stream_id,
        consumer = excluded.consumer,
        options = excluded.options,
        state = 'running',
        run = excluded.run,
        run_count = 0,
        total_estimate = null,
        last_error = null,
        started_at = clock_timestamp(),
        noted_at = clock_timestamp(),
        ended_at = null
    returning p.run
$$;

create or replace function postbus_data.end_pipeline(name text, run uuid, state text, last_error text)
returns void
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
/* Record that a run has ended: done, stopped, or failed with this error. Does nothing for a run that was replaced. */
    update postbus_data.pipeline as p
    set state = end_pipeline.state,
        last_error = end_pipeline.last_error,
        noted_at = clock_timestamp(),
        ended_at = clock_timestamp()
    where p.name = end_pipeline.name
        and p.run = end_pipeline.run
$$;

create or replace function postbus_data.hold_pipeline(name text, run uuid)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
/*
Keep other runs from replacing this one until the transaction ends.

Raises   PB409 when another run has replaced it already.
Locks    the pipeline's row.
*/
begin
    perform from postbus_data.pipeline as p where p.name = hold_pipeline.name and p.run = hold_pipeline.run for update;
    if not found then
        raise exception using
            errcode = 'PB409',
            message = format('another run of pipeline "%s" has begun', name),
            hint = 'this run stops; nothing was lost or duplicated';
    end if;
end
$$;

create or replace function postbus_data.note_pipeline(
    name text,
    run uuid,
    done_count bigint,
    total_estimate bigint,
    position_seq bigint,
    aside_count bigint,
    late_count bigint
)
returns boolean
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
/*
Record the progress of a pipeline's run: done_count more messages, of about total_estimate, aside_count more rows that are in
another stream, and late_count more that a watermark dropped.

Returns  whether it is still the pipeline's run; null when another run has replaced it, or the pipeline is gone.
*/
    update postbus_data.pipeline as p
    set run_count = p.run_count + done_count,
        message_count = p.message_count + done_count,
        total_estimate = note_pipeline.total_estimate,
        aside_count = p.aside_count + note_pipeline.aside_count,
        late_count = p.late_count + note_pipeline.late_count,
        position_seq = coalesce(note_pipeline.position_seq, p.position_seq),
        noted_at = clock_timestamp()
    where p.name = note_pipeline.name
        and p.run = note_pipeline.run
    returning true
$$;

create or replace function postbus_data.open_aside(stream text)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
/*
Create the stream for rejected rows and their reasons, unless it exists.

Raises   PB400 for an invalid name, PB409 when it exists and does not hold json.
*/
declare
    found_type text;
begin
    if not exists (select from postbus_data.stream as s where s.name = open_aside.stream) then
        begin
            perform postbus.create_stream(stream, partitions => 1, max_message_bytes => 268435456);
        exception when sqlstate 'PB409' then
            null; -- Another was faster.
        end;
    end if;
    found_type := (select s.data_type from postbus_data.stream as s where s.name = open_aside.stream);
    if found_type <> 'json' then
        raise exception using
            errcode = 'PB409',
            message = format('stream "%s" holds %s, but rejected rows are published as json', stream, found_type),
            hint = 'choose another stream for them with --bad-into';
    end if;
end
$$;

create or replace function postbus_data.pipeline_position(name text)
returns bigint
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
/* The position of a pipeline; null when it has not begun. */
    select p.position_seq from postbus_data.pipeline as p where p.name = pipeline_position.name
$$;

create or replace function postbus_data.plan_pipeline(name text, run uuid, plan jsonb, anew boolean)
returns jsonb
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
/*
The plan of a pipeline that has an end, as decided when it first began, so that a run that continues does the same. With anew,
and when there is no plan yet, the given plan is stored.

Returns  the plan in force; null when another run has replaced this one.
*/
declare
    known jsonb;
begin
    select coalesce(p.plan, plan_pipeline.plan)
    into known
    from postbus_data.pipeline as p
    where p.name = plan_pipeline.name
        and p.run = plan_pipeline.run
    for update;
    if anew and known is not null then
        known := plan_pipeline.plan;
    end if;
    update postbus_data.pipeline as p
    set plan = known,
        position_seq = case when known = p.plan then p.position_seq end
    where p.name = plan_pipeline.name
        and p.run = plan_pipeline.run;
    return known;
end
$$;

create or replace function postbus.list_pipelines()
returns setof postbus.pipeline_info
language sql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
The pipelines, in order of their names.

state           running, done, stopped (by a signal; it continues when it is run again), failed (see last_error), or lost (it was
                running, and has reported nothing for a minute).
message_count   how many messages it has processed in all its runs; run_count in the last run, of about total_estimate.
rate            messages per second of the last run.
lag_estimate    how many messages a pipeline that follows its stream has left; null for a pipeline that has an end.
noted_at        when it last reported its progress.
aside_count     what it could not publish in all its runs, and has put into another stream; late_count what a watermark dropped.
*/
    select
        p.name,
        p.kind,
        s.name,
        case when p.state = 'running' and p.noted_at < clock_timestamp() - interval '1 minute' then 'lost' else p.state end,
        p.message_count,
        p.run_count,
        p.total_estimate,
        round(p.run_count / greatest(0.001, extract(epoch from coalesce(p.ended_at, p.noted_at) - p.started_at)), 1)::double precision,
        (
            select t.lag_estimate
            from postbus_data.consumer as c
            cross join lateral postbus.stats(s.name, c.name) as t
            where c.stream_name = s.name
                and c.name = p.consumer
                and t.partition is null
        ),
        p.position_seq,
        p.last_error,
        p.started_at,
        p.noted_at,
        p.ended_at,
        p.aside_count,
        p.late_count
    from postbus_data.pipeline as p
    join postbus_data.stream as s on s.id = p.stream_id
    order by p.name
$$;

create or replace function postbus.drop_push(stream text, consumer text)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Remove the endpoint of a consumer, with its secrets. The consumer stays where it is, and its messages can be received.

Raises   PB404 for an unknown stream or consumer, or one without an endpoint.
Touches  push, push_secret, push_state, push_test (delete).
*/
declare
    dropped integer := (postbus_data.push_of(stream, consumer)).consumer_id;
begin
    delete from postbus_data.push as p where p.consumer_id = dropped;
end
$$;

create or replace function postbus_data.add_push_attempts(consumer_id integer, attempts jsonb)
returns void
language sql
volatile
as $$
/*
Keep attempts to send messages to an endpoint.

attempts  objects with seq or test_id, attempt, attempted_at, outcome, status, duration in seconds, error, address, answer in base64.

Touches  push_attempt (insert).
*/
    insert into postbus_data.push_attempt (
        slot, consumer_id, seq, test_id, attempt, attempted_at, outcome, status, duration, error, address, answer
    )
    select
        postbus_data.push_slot(clock_timestamp()), add_push_attempts.consumer_id, a.seq, a.test_id, a.attempt, clock_timestamp(), a.outcome,
        a.status, make_interval(secs => a.duration), left(a.error, 500), a.address, decode(a.answer, 'base64')
    from jsonb_to_recordset(attempts) as a (
        seq bigint, test_id bigint, attempt integer, outcome text, status integer, duration double precision, error text, address text,
        answer text
    )
$$;

create or replace function postbus_data.check_push(wanted postbus_data.push)
returns void
language plpgsql
as $$
/* Raise PB400 for settings that an endpoint cannot have. Whether its address may be used depends on the process that sends. */
declare
    problem text;
begin
    problem := case
        when wanted.url is null then 'url is missing'
        when length(wanted.url) > 2000 then 'url has more than 2000 characters'
        when wanted.url !~ '^https?://[^\s/?#@\\]+([/?#][^\s\\]*)?$'
            then 'url is not one of http or https, or has a user name, spaces or backslashes'
        when jsonb_typeof(wanted.headers) <> 'object' or wanted.headers @? 'strict $.* ? (@.type() != "string")'
            then 'headers are not strings by name'
        when exists (
            select
            from jsonb_each_text(wanted.headers) as h
            where h.key !~ '^[A-Za-z0-9!#$%&''*+.^_|~-]{1,100}$'
                or h.value !~ '^[ -~]*$'
                or length(h.value) > 4000
        ) then 'headers have a name or value that HTTP does not allow'
        when exists (
            select
            from jsonb_object_keys(wanted.headers) as h (name)
            where lower(h.name) in (
                'connection', 'content-encoding', 'content-length', 'content-type', 'expect', 'host', 'keep-alive', 'te', 'trailer',
                'transfer-encoding', 'upgrade'
            )
                or lower(h.name) like 'webhook-%'
                or lower(h.name) like 'postbus-%'
        ) then 'headers have a name that Postbus sets itself'
        when (wanted.mode in ('raw', 'standard', 'sequin', 'batch')) is not true
            then format('mode = %L is not one of raw, standard, sequin, batch', wanted.mode)
        when wanted.batch_size not between 1 and 1000 then format('batch_size = %s is not between 1 and 1000', wanted.batch_size)
        when wanted.timeout not between interval '1 second' and interval '120 seconds'
            then format('timeout = %s is not between 1 and 120 seconds', wanted.timeout)
        when wanted.concurrency not between 1 and 1000 then format('concurrency = %s is not between 1 and 1000', wanted.concurrency)
        when wanted.max_rate is not null and (wanted.max_rate between 0.001 and 1000000) is not true
            then format('max_rate = %s is not between 0.001 and 1000000', wanted.max_rate)
        when cardinality(wanted.retry_schedule) > 100 then 'retry_schedule has more than 100 delays'
        when exists (
            select from unnest(wanted.retry_schedule) as d where (d between interval '0' and interval '30 days') is not true
        ) then 'retry_schedule has a delay that is not between 0 and 30 days'
        when exists (select from unnest(wanted.permanent_statuses) as s where (s between 300 and 599) is not true)
            then 'permanent_statuses has a status that is not between 300 and 599'
    end;
    if problem is not null then
        raise exception using errcode = 'PB400', message = problem;
    end if;
end
$$;

create or replace function postbus_data.check_push_secret(secret text)
returns void
language plpgsql
as $$
/* Raise PB400 for what is not a secret of Standard Webhooks. The message does not repeat it. */
begin
    if (secret ~ '^whsec_[A-Za-z0-9+/]{32,86}={0,2}$') is not true then
        raise exception using
            errcode = 'PB400',
            message = 'secret is not whsec_ and the base64 of 24 to 64 bytes',
            hint = 'the library makes one: leave it out';
    end if;
end
$$;

create or replace function postbus_data.empty_push_attempts()
returns integer
language plpgsql
volatile
set lock_timeout = '500ms'
as $$
/*
Empty the tables of attempts whose next turn comes, or is there and still has attempts of eight days ago.

Returns  how many.
Touches  push_attempt (truncate of a table).
Locks    that table, exclusively; a table that somebody reads is put off.
*/
declare
    now_at timestamptz := clock_timestamp();
    day integer;
    oldest timestamptz;
    emptied integer := 0;
begin
    for day in 0 .. 1 loop
        execute format(
            'select min(a.attempted_at) from (select attempted_at from postbus_data.push_attempt_%s limit 1) as a',
            postbus_data.push_slot(now_at + make_interval(days => day))
        ) into oldest;
        if oldest < now_at - interval '6 days 12 hours' then
            begin
                execute format('truncate postbus_data.push_attempt_%s', postbus_data.push_slot(now_at + make_interval(days => day)));
                emptied := emptied + 1;
            exception when lock_not_available then
                raise warning 'attempts of % are removed later: they are being read', oldest::date;
            end;
        end if;
    end loop;
    return emptied;
end
$$;

create or replace function postbus_data.lock_push_state(consumer_id integer)
returns postbus_data.push_state
language plpgsql
volatile
as $$
/*
How an endpoint does, for a change of it: read after its mutex was taken, which is held until the transaction ends. Row n 0 if nothing is
known.
*/
declare
    state postbus_data.push_state;
begin
    perform pg_advisory_xact_lock(postbus_data.consumer_lock_class(consumer_id), postbus_data.consumer_lock('push'));
    state := postbus_data.push_state_of(consumer_id);
    if state.n is null then
        state.consumer_id := consumer_id;
        state.n := 0;
        state.rest_count := 0;
        state.window_requests := 0;
        state.window_failures := 0;
        state.failed_seqs := '{}';
        state.unreachable_count := 0;
    end if;
    return state;
end
$$;

create or replace function postbus_data.push_of(stream text, consumer text)
returns postbus_data.push
language plpgsql
as $$
/* The endpoint of a consumer, locked until the transaction ends. Raises PB404 for an unknown stream or consumer, or one without an endpoint. */
declare
    endpoint postbus_data.push;
    reader_id integer := (postbus_data.find_consumer(stream, consumer)).id;
begin
    select p.* into endpoint from postbus_data.push as p where p.consumer_id = reader_id for update;
    if endpoint.consumer_id is null then
        raise exception using
            errcode = 'PB404',
            message = format('consumer "%s" of stream "%s" has no endpoint', consumer, stream),
            hint = format('set one: select postbus.set_push(%L, %L, ''https://…'')', stream, consumer);
    end if;
    return endpoint;
end
$$;

create or replace function postbus_data.push_slot(at timestamptz)
returns smallint
language sql
immutable parallel safe
as $$
/* Which table of attempts has those of a day, by UTC. */
    select mod(floor(extract(epoch from at) / 86400)::bigint, 8)::smallint
$$;

create or replace function postbus_data.push_state_of(consumer_id integer)
returns postbus_data.push_state
language sql
stable
as $$
/* How an endpoint does: the newest row; null if nothing is known. */
    select s
    from postbus_data.push_state as s
    where s.consumer_id = push_state_of.consumer_id
    order by s.n desc
    limit 1
$$;

create or replace function postbus_data.push_targets()
returns table (
    consumer_id integer, stream text, consumer text, version integer, is_active boolean, is_resting boolean, rest_seconds double precision,
    has_test boolean
)
language sql
volatile
as $$
/* What whoever sends has to know about all endpoints, once a second: the rest is asked for when the version has changed. */
    select
        p.consumer_id, c.stream_name, c.name, p.version, p.paused_reason is null and not c.paused,
        s.rests_until is not null,
        coalesce(greatest(extract(epoch from greatest(s.rests_until, s.probe_until) - clock_timestamp()), 0), 0)::double precision,
        exists (select from postbus_data.push_test as t where t.consumer_id = p.consumer_id)
    from postbus_data.push as p
    join postbus_data.consumer as c on c.id = p.consumer_id
    left join lateral postbus_data.push_state_of(p.consumer_id) as s on true
$$;

create or replace function postbus_data.push_to_send(consumer_id integer)
returns table (
    stream_id integer, data_type text, ordering text, ack_wait interval, has_backoff boolean, url text, headers jsonb, mode text,
    batch_size integer, timeout interval, concurrency integer, max_rate double precision, retry_schedule interval[],
    permanent_statuses integer[], keep_successes boolean, secrets text[], secrets_change_in double precision
)
language sql
volatile
as $$
/*
An endpoint for whoever sends, with its secrets, newest first, and in how many seconds the first of them ends; no row if there is none.
*/
    select
        c.stream_id, s.data_type, c.ordering, c.ack_wait, cardinality(c.backoff) > 0, p.url, p.headers, p.mode, p.batch_size, p.timeout, p.concurrency,
        p.max_rate, p.retry_schedule, p.permanent_statuses, p.keep_successes,
        array(
            select k.secret
            from postbus_data.push_secret as k
            where k.consumer_id = p.consumer_id
                and (k.valid_until is null or k.valid_until > clock_timestamp())
            order by k.n desc
        ),
        (
            select extract(epoch from min(k.valid_until) - clock_timestamp())::double precision
            from postbus_data.push_secret as k
            where k.consumer_id = p.consumer_id
                and k.valid_until > clock_timestamp()
        )
    from postbus_data.push as p
    join postbus_data.consumer as c on c.id = p.consumer_id
    join postbus_data.stream as s on s.id = c.stream_id
    where p.consumer_id = push_to_send.consumer_id
$$;

create or replace function postbus_data.report_push(consumer_id integer, report jsonb)
returns table (rest_seconds double precision, is_paused boolean)
language plpgsql
volatile
as $$
/*
Record how requests to an endpoint went, and decide whether it rests.

It rests after five failures in a row of different messages, after it could not be reached three times in a row, when half of ten or more
requests within a minute failed, or when it asked for that. A rest takes 5 s, then 10 s, … up to 5 minutes; then one request is sent,
and if that fails it rests again. It is paused when nothing has succeeded for 5 days, or for a reason that the report gives.

report  successes: how many succeeded since the last report; failures; failed_seqs: the messages that failed since the last success; unreachable:
        how often it was not reached since then; error: the last one; rest: how many seconds it asked for; is_probe: this was the one request after a rest; pause: why nothing more may be sent to it;
        attempts: what push_attempt holds, durations in seconds and answers in base64.

Returns  for how many seconds it rests (0: it does not), and whether it is paused.
Touches  push_state (insert, delete), push_attempt (insert), push, waiting (update).
Locks    the endpoint's mutex, if what is known of it changes.
*/
#variable_conflict use_variable
declare
    now_at timestamptz := clock_timestamp();
    state postbus_data.push_state;
    successes integer := coalesce((report ->> 'successes')::integer, 0);
    failures integer := coalesce((report ->> 'failures')::integer, 0);
    is_probe boolean := coalesce((report ->> 'is_probe')::boolean, false);
    asked_for double precision := (report ->> 'rest')::double precision;
    why text;
begin
    if report ? 'attempts' then
        perform postbus_data.add_push_attempts(consumer_id, report -> 'attempts');
    end if;
    state := postbus_data.push_state_of(consumer_id);
    if failures > 0 or is_probe or asked_for is not null or report ? 'pause' or state.window_failures > 0 or cardinality(state.failed_seqs) > 0
        or state.unreachable_count > 0 or state.last_success_at is null or state.last_success_at < now_at - interval '10 seconds'
    then
        state := postbus_data.lock_push_state(consumer_id);
        if (state.window_started_at > now_at - interval '1 minute') is not true then
            state.window_started_at := now_at;
            state.window_requests := 0;
            state.window_failures := 0;
        end if;
        state.window_requests := state.window_requests + successes + failures;
        state.window_failures := state.window_failures + failures;
        if successes > 0 then
            state.failed_seqs := '{}';
            state.unreachable_count := 0;
            state.first_failure_at := null;
            state.last_success_at := now_at;
            if is_probe then
                state.rests_until := null;
                state.rest_reason := null;
                state.rest_count := 0;
                state.window_requests := 0;
                state.window_failures := 0;
                -- Former ones were put off until after this one.
                update postbus_data.waiting as w
                set due_at = now_at
                where w.consumer_id + 0 = consumer_id
                    and w.due_at > now_at
                    and w.due_at < now_at + interval '10 minutes'
                    and w.reason like 'probe: %';
            end if;
        end if;
        if failures > 0 then
            state.first_failure_at := coalesce(state.first_failure_at, now_at);
            state.last_failure_at := now_at;
            state.last_error := left(report ->> 'error', 500);
            state.failed_seqs := array(
                select distinct f.seq
                from (
                    select unnest(state.failed_seqs)
                    union all
                    select q.seq::bigint from jsonb_array_elements_text(coalesce(report -> 'failed_seqs', '[]')) as q (seq)
                ) as f (seq)
                order by f.seq
                limit 5
            );
            state.unreachable_count := state.unreachable_count + coalesce((report ->> 'unreachable')::integer, 0);
            why := case
                when is_probe then 'it still fails'
                when state.unreachable_count >= 3 then 'it cannot be reached'
                when cardinality(state.failed_seqs) >= 5 then 'five messages in a row failed'
                when state.window_requests >= 10 and 2 * state.window_failures >= state.window_requests then 'half of its requests fail'
            end;
        end if;
        if is_probe then
            state.probe_until := null;
        end if;
        if asked_for is not null then
            state.rests_until := greatest(state.rests_until, now_at + make_interval(secs => asked_for));
            state.rest_reason := 'it asked to be left alone';
        elsif why is not null and (is_probe or state.rests_until is null) then
            state.rest_count := state.rest_count + 1;
            -- With a factor from 0.8 to 1.2, so that not all endpoints of a host are tried at once.
            state.rests_until := now_at
                + least(interval '5 seconds' * 2 ^ least(state.rest_count - 1, 10), interval '5 minutes') * (0.8 + 0.4 * random());
            state.rest_reason := concat_ws(': ', why, state.last_error);
        end if;
        perform postbus_data.store_push_state(state);
        if report ? 'pause' or state.first_failure_at < now_at - interval '5 days' then
            update postbus_data.push as p
            set paused_reason = coalesce(left(report ->> 'pause', 500), 'nothing has succeeded for 5 days'),
                version = p.version + 1
            where p.consumer_id = consumer_id
                and p.paused_reason is null;
        end if;
    end if;
    rest_seconds := case when state.rests_until is null then 0 else greatest(extract(epoch from state.rests_until - now_at), 0.001) end;
    is_paused := exists (select from postbus_data.push as p where p.consumer_id = consumer_id and p.paused_reason is not null);
    return next;
end
$$;

create or replace function postbus_data.store_push_state(state postbus_data.push_state)
returns void
language plpgsql
volatile
as $$
/*
Store how an endpoint does, in place of what was read by lock_push_state; nothing if the endpoint was removed meanwhile.

Touches  push_state (insert, delete).
*/
begin
    -- A locked row cannot be removed before the new one refers to it.
    perform from postbus_data.push as p where p.consumer_id = state.consumer_id for key share;
    if not found then
        return;
    end if;
    delete from postbus_data.push_state as s where s.consumer_id = state.consumer_id and s.n = state.n;
    state.n := state.n + 1;
    insert into postbus_data.push_state select (state).*;
end
$$;

create or replace function postbus_data.take_push_probe(consumer_id integer, give_back boolean default false)
returns boolean
language plpgsql
volatile
as $$
/*
Take the one request that an endpoint gets after a rest: of all processes, one at a time sends it, and then reports how it went.

give_back  there was nothing to send: another process may take it.

Returns  whether the caller may send.
Touches  push_state (insert, delete).
Locks    the endpoint's mutex.
*/
declare
    state postbus_data.push_state := postbus_data.lock_push_state(consumer_id);
    timeout interval := (select p.timeout from postbus_data.push as p where p.consumer_id = take_push_probe.consumer_id);
begin
    if give_back then
        state.probe_until := null;
    elsif (state.rests_until <= clock_timestamp()) is not true or state.probe_until > clock_timestamp() or timeout is null then
        return false;
    else
        state.probe_until := clock_timestamp() + timeout + interval '15 seconds';
    end if;
    perform postbus_data.store_push_state(state);
    return true;
end
$$;

create or replace function postbus_data.take_push_tests(consumer_id integer)
returns setof bigint
language sql
volatile
as $$
/*
Take the tests that were asked for: of all processes, one sends each.

Touches  push_test (delete).
*/
    delete from postbus_data.push_test as t
    where t.consumer_id = take_push_tests.consumer_id
        and t.id in (
            select o.id from postbus_data.push_test as o where o.consumer_id = take_push_tests.consumer_id for update skip locked
        )
    returning t.id
$$;

create or replace function postbus_data.take_push_turns(consumer_id integer, max_rate double precision, wanted integer)
returns table (granted integer, wait_seconds double precision)
language plpgsql
volatile
as $$
/*
Take turns to send requests to an endpoint with a limited rate, which all processes share. Up to a second's worth may be taken at once.

Returns  how many requests may be sent now; if none, after how many seconds one may.
Touches  push_state (insert, delete).
Locks    the endpoint's mutex.
*/
declare
    state postbus_data.push_state := postbus_data.lock_push_state(consumer_id);
    now_at timestamptz := clock_timestamp();
    ahead double precision;
begin
    -- The next turn, in turns from now; a burst may be so many turns ahead.
    ahead := greatest(coalesce(extract(epoch from state.next_turn_at - now_at) * max_rate, 0), 0);
    granted := least(wanted, greatest(floor(greatest(max_rate, 1) - ahead), 0));
    if granted = 0 then
        wait_seconds := (ahead - greatest(max_rate, 1) + 1) / max_rate;
        return next;
        return;
    end if;
    wait_seconds := 0;
    state.next_turn_at := now_at + make_interval(secs => (ahead + granted) / max_rate);
    perform postbus_data.store_push_state(state);
    return next;
end
$$;

create or replace function postbus.list_pushes(
    stream text default null,
    consumer text default null,
    caller postbus.caller default postbus.current_caller()
)
returns setof postbus.push_info
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Endpoints of push consumers and how they do: of all streams that the caller may consume, of one, or that of one consumer. The values of
headers and the secrets are not shown.

Raises   PB403 without the right to consume, PB404 for an unknown stream or consumer.
*/
#variable_conflict use_variable
declare
    only_id integer := case
        when consumer is not null then (postbus_data.permitted_consumer(caller, stream, consumer)).id
    end;
    only_stream integer := case when stream is not null then postbus_data.permitted_stream(caller, stream, 'consume') end;
begin
    return query
    select
        c.stream_name, c.name, p.url,
        array(select h.name from jsonb_object_keys(p.headers) as h (name) order by h.name),
        p.mode, p.batch_size, p.timeout, p.concurrency, p.max_rate, p.retry_schedule, p.permanent_statuses, p.keep_successes,
        (
            select count(*)
            from postbus_data.push_secret as k
            where k.consumer_id = p.consumer_id
                and (k.valid_until is null or k.valid_until > clock_timestamp())
        )::integer,
        case
            when p.paused_reason is not null or c.paused then 'paused'
            when s.rests_until is not null then 'resting'
            else 'active'
        end,
        case
            when p.paused_reason is not null then p.paused_reason
            when c.paused then 'the consumer is paused'
            when s.rests_until is not null then s.rest_reason
        end,
        s.rests_until, s.first_failure_at, s.last_failure_at, s.last_success_at, s.last_error, p.created_at
    from postbus_data.push as p
    join postbus_data.consumer as c on c.id = p.consumer_id
    left join lateral postbus_data.push_state_of(p.consumer_id) as s on true
    where (only_id is null or c.id = only_id)
        and (only_stream is null or c.stream_id = only_stream)
        and (only_stream is not null or postbus_data.has_right(caller, c.stream_id, 'consume'))
    order by c.stream_name, c.name;
end
$$;

create or replace function postbus.pause_push(stream text, consumer text, reason text default 'paused')
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Send nothing more to the endpoint of a consumer until it is resumed. Its messages wait; none is lost.

Raises   PB404 for an unknown stream or consumer, or one without an endpoint.
Touches  push (update).
*/
declare
    paused_id integer := (postbus_data.push_of(stream, consumer)).consumer_id;
begin
    update postbus_data.push as p
    set paused_reason = left(coalesce(nullif(reason, ''), 'paused'), 200),
        version = p.version + 1
    where p.consumer_id = paused_id;
end
$$;

create or replace function postbus.push_attempts(
    stream text,
    consumer text,
    seq bigint default null,
    test_id bigint default null,
    outcome text default null,
    before_time timestamptz default null,
    max_attempts integer default 100,
    caller postbus.caller default postbus.current_caller()
)
returns setof postbus.push_attempt
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Attempts to send the messages of a consumer to its endpoint, newest first. They are kept for six days at least; those that succeeded only with
keep_successes.

seq          only those of a message.
test_id      only that of a test.
outcome      only those that were acked, failed, dead (the message became a dead letter), returned (it does not count) or test.
before_time  only those before this time; for the next page, the last attempted_at.

Raises   PB400 for an argument out of range, PB403 without the right to consume, PB404 for an unknown stream or consumer.
*/
#variable_conflict use_variable
declare
    reader postbus_data.consumer := postbus_data.permitted_consumer(caller, stream, consumer);
begin
    if (max_attempts between 1 and 10000) is not true then
        raise exception using errcode = 'PB400', message = format('max_attempts = %s is not between 1 and 10000', max_attempts);
    elsif (outcome in ('acked', 'failed', 'dead', 'returned', 'test')) is false then
        raise exception using
            errcode = 'PB400', message = format('outcome = %L is not one of acked, failed, dead, returned, test', outcome);
    end if;
    return query
    select a.seq, a.test_id, a.attempt, a.attempted_at, a.outcome, a.status, a.duration, a.error, a.address, a.answer
    from postbus_data.push_attempt as a
    where a.consumer_id = reader.id
        and a.attempted_at < coalesce(before_time, 'infinity')
        and a.attempted_at > clock_timestamp() - interval '7 days'
        and (seq is null or a.seq = seq)
        and (test_id is null or a.test_id = test_id)
        and (outcome is null or a.outcome = outcome)
    order by a.attempted_at desc
    limit max_attempts;
end
$$;

create or replace function postbus.resend_push(
    stream text,
    consumer text,
    seq bigint default null,
    failed_since timestamptz default null,
    max_messages integer default 1000
)
returns integer
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Send a message again, or those that have failed since a time and wait or are dead letters, oldest first. To limit the rate, call it for a
few messages at a time.

seq           a message: also one that was sent before, or that waits for its next attempt.
failed_since  instead: all that failed at or after this time.

Returns  how many are sent again.
Raises   PB400 unless one of the two is given, or for an argument out of range; PB404 for an unknown stream or consumer, or one without an
         endpoint; PB412 outside READ COMMITTED.
Touches  dead_letter (delete), waiting (insert, update), kept (insert).
*/
#variable_conflict use_variable
declare
    endpoint postbus_data.push := postbus_data.push_of(stream, consumer);
    chosen bigint[];
    sent integer := 0;
    moved integer;
begin
    if num_nonnulls(seq, failed_since) <> 1 then
        raise exception using errcode = 'PB400', message = 'give either seq or failed_since';
    elsif (max_messages between 1 and 10000) is not true then
        raise exception using errcode = 'PB400', message = format('max_messages = %s is not between 1 and 10000', max_messages);
    end if;
    select array_agg(d.seq)
    into chosen
    from (
        select d.seq
        from postbus_data.dead_letter as d
        where d.consumer_id + 0 = endpoint.consumer_id
            and (seq is null or d.seq = seq)
            and (failed_since is null or d.died_at >= failed_since)
        order by d.seq
        limit max_messages
    ) as d;
    if chosen is not null then
        sent := postbus.redrive(stream, consumer, seqs => chosen, max_messages => max_messages);
    end if;
    update postbus_data.waiting as w
    set due_at = clock_timestamp()
    where w.consumer_id = endpoint.consumer_id
        and w.due_at > clock_timestamp()
        and w.seq in (
            select o.seq
            from postbus_data.waiting as o
            where o.consumer_id = endpoint.consumer_id
                and o.due_at > clock_timestamp()
                and (seq is null or o.seq = seq)
                and (failed_since is null or o.failed_at >= failed_since)
            order by o.seq
            limit max_messages - sent
        );
    get diagnostics moved = row_count;
    sent := sent + moved;
    if seq is not null and sent = 0 then
        sent := (select r.replayed from postbus.replay(stream, consumer, from_seq => seq, to_seq => seq) as r);
    end if;
    return sent;
end
$$;

create or replace function postbus.resume_push(stream text, consumer text)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Send to the endpoint of a consumer again, at once, if it is paused or rests. What is known of its failures is forgotten.

Raises   PB404 for an unknown stream or consumer, or one without an endpoint.
Touches  push (update), push_state (delete).
Locks    the endpoint's mutex.
*/
declare
    resumed_id integer := (postbus_data.push_of(stream, consumer)).consumer_id;
begin
    update postbus_data.push as p
    set paused_reason = null,
        version = p.version + 1
    where p.consumer_id = resumed_id;
    perform pg_advisory_xact_lock(postbus_data.consumer_lock_class(resumed_id), postbus_data.consumer_lock('push'));
    delete from postbus_data.push_state as s where s.consumer_id = resumed_id;
end
$$;

create or replace function postbus.rotate_push_secret(
    stream text,
    consumer text,
    secret text,
    keep_old_for interval default interval '1 day'
)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Sign requests with a new secret, and for a while with the old ones too, so that a receiver can change at any time between.

secret        whsec_ and the base64 of 24 to 64 bytes.
keep_old_for  how long the old ones are still used, up to 30 days; 0 ends them at once.

Raises   PB400 for an invalid value, PB404 for an unknown stream or consumer, or one without an endpoint.
Touches  push (update), push_secret (insert, update, delete).
*/
#variable_conflict use_variable
declare
    endpoint postbus_data.push := postbus_data.push_of(stream, consumer);
begin
    perform postbus_data.check_push_secret(secret);
    if (keep_old_for between interval '0' and interval '30 days') is not true then
        raise exception using errcode = 'PB400', message = format('keep_old_for = %s is not between 0 and 30 days', keep_old_for);
    end if;
    update postbus_data.push_secret as s
    set valid_until = least(s.valid_until, clock_timestamp() + keep_old_for)
    where s.consumer_id = endpoint.consumer_id;
    delete from postbus_data.push_secret as s where s.consumer_id = endpoint.consumer_id and s.valid_until <= clock_timestamp();
    insert into postbus_data.push_secret (consumer_id, n, secret)
    select
        endpoint.consumer_id,
        coalesce((select max(s.n) from postbus_data.push_secret as s where s.consumer_id = endpoint.consumer_id), 0) + 1,
        secret;
    update postbus_data.push as p set version = p.version + 1 where p.consumer_id = endpoint.consumer_id;
end
$$;

create or replace function postbus.set_push(
    stream text,
    consumer text,
    url text default null,
    headers jsonb default null,
    mode text default null,
    batch_size integer default null,
    timeout interval default null,
    concurrency integer default null,
    max_rate double precision default null,
    retry_schedule interval[] default null,
    permanent_statuses integer[] default null,
    keep_successes boolean default null,
    secret text default null
)
returns boolean
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Send the messages of a consumer to an endpoint, or change how. What is null stays as it is, and at first takes its default. Servers, and
whoever runs `postbus push run`, send; the url is checked against their settings when they do.

url                 https://…, without a user name; needed at first.
headers             sent with each request: strings by name.
mode                raw (the data as it is, by default), standard, sequin or batch.
batch_size          in mode batch: how many messages a request has at most; 1 to 1,000, by default 100.
timeout             for an answer: 1 to 120 seconds, by default 20. The consumer's ack_wait becomes 15 seconds more, if it is less.
concurrency         how many requests a process has open at once: 1 to 1,000, by default 10.
max_rate            requests per second, of all processes together; 0: no limit.
retry_schedule      how long a message waits after its first, second, … failure; the last repeats. Empty: as its order suggests.
permanent_statuses  answers after which a message becomes a dead letter at once, such as {400,422}.
keep_successes      keep attempts that succeeded, too, and not only failures.
secret              what requests are signed with: whsec_ and the base64 of 24 to 64 bytes. It is used only if the endpoint is new.

Returns  whether the endpoint is new.
Raises   PB400 for an invalid value, PB404 for an unknown stream or consumer, PB409 for a group.
Touches  push, push_secret (insert, update), push_state (delete) when the url changes, consumer (update).
*/
#variable_conflict use_variable
declare
    reader postbus_data.consumer := postbus_data.find_consumer(stream, consumer);
    wanted postbus_data.push;
    existing postbus_data.push;
begin
    if reader.is_group then
        raise exception using
            errcode = 'PB409',
            message = format('"%s" of stream "%s" is a group, which reads by position', consumer, stream),
            hint = 'create a consumer for the endpoint';
    end if;
    select p.* into existing from postbus_data.push as p where p.consumer_id = reader.id for update;
    wanted.consumer_id := reader.id;
    wanted.url := coalesce(url, existing.url);
    wanted.headers := coalesce(headers, existing.headers, '{}');
    wanted.mode := coalesce(mode, existing.mode, 'raw');
    wanted.batch_size := coalesce(batch_size, existing.batch_size, 100);
    wanted.timeout := coalesce(timeout, existing.timeout, interval '20 seconds');
    wanted.concurrency := coalesce(concurrency, existing.concurrency, 10);
    wanted.max_rate := case when max_rate is null then existing.max_rate when max_rate <> 0 then max_rate end;
    wanted.retry_schedule := coalesce(retry_schedule, existing.retry_schedule, '{}');
    wanted.permanent_statuses := coalesce(permanent_statuses, existing.permanent_statuses, '{}');
    wanted.keep_successes := coalesce(keep_successes, existing.keep_successes, false);
    perform postbus_data.check_push(wanted);
    if existing.consumer_id is null then
        perform postbus_data.check_push_secret(secret);
        insert into postbus_data.push (
            consumer_id, url, headers, mode, batch_size, timeout, concurrency, max_rate, retry_schedule, permanent_statuses, keep_successes
        )
        values (
            reader.id, wanted.url, wanted.headers, wanted.mode, wanted.batch_size, wanted.timeout, wanted.concurrency, wanted.max_rate,
            wanted.retry_schedule, wanted.permanent_statuses, wanted.keep_successes
        );
        insert into postbus_data.push_secret (consumer_id, n, secret) values (reader.id, 1, secret);
    else
        update postbus_data.push as p
        set url = wanted.url,
            headers = wanted.headers,
            mode = wanted.mode,
            batch_size = wanted.batch_size,
            timeout = wanted.timeout,
            concurrency = wanted.concurrency,
            max_rate = wanted.max_rate,
            retry_schedule = wanted.retry_schedule,
            permanent_statuses = wanted.permanent_statuses,
            keep_successes = wanted.keep_successes,
            version = p.version + 1
        where p.consumer_id = reader.id;
        if wanted.url <> existing.url then
            -- What is known is about another endpoint.
            perform pg_advisory_xact_lock(postbus_data.consumer_lock_class(reader.id), postbus_data.consumer_lock('push'));
            delete from postbus_data.push_state as s where s.consumer_id = reader.id;
        end if;
    end if;
    -- A request that is on its way must not be delivered to somebody else.
    update postbus_data.consumer as c
    set ack_wait = wanted.timeout + interval '15 seconds'
    where c.id = reader.id
        and c.ack_wait < wanted.timeout + interval '15 seconds';
    return existing.consumer_id is null;
end
$$;

create or replace function postbus.test_push(stream text, consumer text)
returns bigint
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Ask for a test: whoever sends to the endpoint of a consumer sends it one signed message of type postbus.test, also while it rests or is
paused. push_attempts shows how it went.

Returns  the test's id.
Raises   PB404 for an unknown stream or consumer, or one without an endpoint; PB409 if ten tests wait already: nobody sends.
Touches  push_test (insert).
*/
#variable_conflict use_variable
declare
    endpoint postbus_data.push := postbus_data.push_of(stream, consumer);
    new_id bigint;
begin
    if (select count(*) from postbus_data.push_test as t where t.consumer_id = endpoint.consumer_id) >= 10 then
        raise exception using
            errcode = 'PB409',
            message = format('ten tests of consumer "%s" of stream "%s" wait already', consumer, stream),
            hint = 'nobody sends: run a server (postbus up) or postbus push run';
    end if;
    insert into postbus_data.push_test (consumer_id) values (endpoint.consumer_id) returning id into new_id;
    return new_id;
end
$$;

create or replace function postbus_data.add_dead_letter(
    reader postbus_data.consumer,
    partition integer,
    seq bigint,
    attempts integer,
    reason text,
    token bigint default null
)
returns void
language plpgsql
volatile
as $$
/*
Make a message a dead letter, with a copy of it. A message that was purged leaves no dead letter. With dead_letters_to, another copy is
published to that stream, in the same transaction; if the stream does not take it, the reason says so. For a queue of SQS that copy is the only one.

token  see schedule_retry.

Touches  dead_letter (insert), saved (delete) of a purged message, and what postbus.publish touches.
Locks    with dead_letters_to, what postbus.publish locks.
*/
declare
    data_type text;
    message postbus.delivery;
    headers jsonb;
    as_sqs jsonb;
begin
    select s.data_type into data_type from postbus_data.stream as s where s.id = reader.stream_id;
    message := (postbus_data.fetch_named(reader.stream_id, data_type, partition, array[seq], array[attempts], 0))[1];
    if message.seq is null then
        delete from postbus_data.saved as s where s.consumer_id = reader.id and s.seq = add_dead_letter.seq;
        return;
    end if;
    if reader.dead_letters_to is not null then
        headers := coalesce(message.headers, '{}') || jsonb_strip_nulls(jsonb_build_object(
            'postbus-dead-stream', reader.stream_name, 'postbus-dead-consumer', reader.name, 'postbus-dead-seq', seq::text,
            'postbus-dead-attempts', attempts::text, 'postbus-dead-reason', left(reason, 1000)
        ));
        as_sqs := postbus_data.as_sqs_dead_letter(reader.id, message, headers);
        begin
            perform postbus.publish(
                reader.dead_letters_to, message.key, message.data, coalesce(as_sqs, headers), message.bytes,
                priority => postbus.priority_of(message.partition)
            );
            if as_sqs is not null then
                -- A queue of SQS has its dead letters in the other queue only.
                delete from postbus_data.saved as s where s.consumer_id = reader.id and s.seq = add_dead_letter.seq;
                return;
            end if;
        exception
            when sqlstate 'PB400' or sqlstate 'PB404' or sqlstate 'PB409' or sqlstate 'PB413' or sqlstate 'PB507' then
                reason := concat_ws('; ', reason, format('no copy in stream "%s": %s', reader.dead_letters_to, sqlerrm));
        end;
    end if;
    insert into postbus_data.dead_letter (
        consumer_id, seq, partition, key, data, bytes, headers, published_at, attempts, reason, token, epoch
    )
    values (
        reader.id, message.seq, message.partition, message.key, message.data, message.bytes, message.headers, message.published_at,
        attempts, reason, token, reader.epoch
    )
    on conflict on constraint dead_letter_pkey do update
    set attempts = excluded.attempts,
        reason = excluded.reason,
        died_at = excluded.died_at,
        token = excluded.token,
        epoch = excluded.epoch;
end
$$;

create or replace function postbus_data.add_dead_letters_without_message(
    reader postbus_data.consumer,
    partition integer,
    seqs bigint[],
    attempts integer[],
    messages postbus.delivery[]
)
returns void
language plpgsql
volatile
as $$
/*
Bury those of some messages to be redelivered whose time to live is over, that is, which are not among the live ones. Only if
the consumer buries expired messages; else what was saved with them is removed.

Touches  as add_dead_letter; saved (delete).
*/
declare
    missing record;
begin
    if cardinality(seqs) = cardinality(messages) then
        return;
    end if;
    if reader.on_expired <> 'bury'
        -- There, a missing message was most likely replaced by a later version.
        or (select s.one_message_per_key from postbus_data.stream as s where s.id = reader.stream_id)
    then
        delete from postbus_data.saved as s
        where s.consumer_id = reader.id
            and s.seq in (select m from unnest(seqs) as m where not exists (select from unnest(messages) as live where live.seq = m));
        return;
    end if;
    for missing in
        select m.seq, m.attempt
        from unnest(seqs, attempts) as m (seq, attempt)
        where not exists (select from unnest(messages) as live where live.seq = m.seq)
    loop
        perform postbus_data.add_dead_letter(reader, partition, missing.seq, missing.attempt - 1, 'its time to live was over');
    end loop;
end
$$;

create or replace function postbus_data.append_due(reader postbus_data.consumer, from_time timestamptz, to_time timestamptz)
returns integer
language plpgsql
volatile
as $$
/*
Move messages that are due to the redelivery log of their level, those that came due since the last sweep in order of their seqs.

Its caller holds the sweep mutex until it commits, so rows become visible in the order of their numbers.

Returns  how many were moved.
Touches  waiting (delete), due (insert).
*/
#variable_conflict use_variable
declare
    lanes integer[] := postbus_data.lanes(reader.stream_id);
    -- The last number in each of them.
    last_ns bigint[];
    last_n bigint;
    lane integer;
    moved integer;
begin
    -- Whatever the caller knew of the consumer when it began.
    if (select c.by_channel from postbus_data.consumer as c where c.id = reader.id) then
        return postbus_data.append_channel_due(reader, from_time, to_time);
    end if;
    foreach lane in array lanes loop
        select d.n into last_n
        from postbus_data.due as d
        where d.consumer_id = reader.id
            and d.epoch = reader.epoch
            and d.lane = lane
        order by d.n desc
        limit 1;
        last_ns := last_ns || greatest(last_n, (postbus_data.redelivery_position_of(reader, lane)).read_to_n);
    end loop;

    with ripe as materialized (
        select w.consumer_id, w.partition, w.seq, w.due_at
        from postbus_data.waiting as w
        where w.consumer_id + 0 = reader.id
            and w.due_at > from_time
            and w.due_at <= to_time
        order by w.due_at
        limit 10000
        for update skip locked
    ),
    taken as (
        delete from postbus_data.waiting as w
        using ripe as r
        where w.consumer_id = r.consumer_id
            and w.partition = r.partition
            and w.seq = r.seq
        returning w.partition, w.seq, w.attempts, w.due_at, w.token
    )
    insert into postbus_data.due (consumer_id, epoch, n, partition, seq, attempts, token, lane)
    select
        reader.id, reader.epoch,
        last_ns[array_position(lanes, t.partition / 100000000 * 100000000)] + row_number() over (partition by t.partition / 100000000 order by t.seq),
        t.partition, t.seq, t.attempts, t.token, t.partition / 100000000 * 100000000
    from taken as t;
    get diagnostics moved = row_count;
    return moved;
end
$$;

create or replace function postbus_data.backoff_delay(reader postbus_data.consumer, failure integer)
returns interval
language plpgsql
volatile
as $$
/* How long a message waits after its nth failure, by the consumer's backoff. */
declare
    seconds double precision;
begin
    if cardinality(reader.backoff) = 0 then
        return interval '0';
    end if;
    if reader.backoff_factor is null then
        seconds := extract(epoch from reader.backoff[least(failure, cardinality(reader.backoff))]);
    else
        -- The exponent is limited: the cap, or 30 days, is reached long before.
        seconds := extract(epoch from reader.backoff[1]) * power(reader.backoff_factor, least(failure - 1, 60));
    end if;
    seconds := least(seconds, extract(epoch from coalesce(reader.backoff_cap, interval '30 days')));
    return make_interval(secs => seconds * (1 + reader.backoff_jitter * (2 * random() - 1)));
end
$$;

create or replace function postbus_data.expire_leases(reader postbus_data.consumer, from_time timestamptz, to_time timestamptz)
returns integer
language plpgsql
volatile
as $$
/*
End the leases whose deadline lies in a range of time. Each of their messages that is not settled has failed, but can still be acked
until it is given out again.

Returns  how many messages failed.
Touches  lease, settled (delete), waiting, dead_letter (insert).
*/
declare
    expired postbus_data.lease;
    message record;
    failed integer := 0;
begin
    for expired in
        select l.*
        from postbus_data.lease as l
        where l.consumer_id = reader.id
            and l.deadline > from_time
            and l.deadline <= to_time
        order by l.deadline
        limit 1000
        for update skip locked
    loop
        if expired.epoch = reader.epoch then
            for message in
                select m.seq, m.key, coalesce(m.attempt, 1) as attempt
                from unnest(expired.seqs, expired.keys, expired.attempts) as m (seq, key, attempt)
                where not exists (
                    select from postbus_data.settled as s where s.token = expired.token and s.seq = m.seq
                )
            loop
                perform postbus_data.schedule_retry(
                    reader, expired.partition, message.seq, message.key, message.attempt, null, 'the lease expired',
                    expired.token
                );
                if expired.has_history then
                    perform postbus_data.record_history(expired, array[message.seq], 'failed', 'the lease expired');
                end if;
                failed := failed + 1;
            end loop;
            if reader.ordering = 'key' and (expired.is_split or expired.piece > 0) then
                perform postbus_data.return_later_messages_of_key(reader, expired.token, expired.seqs);
            end if;
        end if;
        delete from postbus_data.settled as s where s.token = expired.token and s.seq = any (expired.seqs);
        delete from postbus_data.lease as l where l.token = expired.token and l.piece = expired.piece;
    end loop;
    return failed;
end
$$;

create or replace function postbus_data.return_later_messages_of_key(reader postbus_data.consumer, token bigint, seqs bigint[])
returns void
language plpgsql
volatile
as $$
/*
In order "key": return, from the same lease, the later messages that have the keys of failed ones. They were not tried, so this
delivery does not count.

Touches  settled, waiting (insert), lease (delete).
*/
declare
    later bigint[];
    message record;
begin
    with failed as materialized (
        select f.key, min(f.seq) as first_seq
        from (
            select w.key, w.seq
            from postbus_data.waiting as w
            where w.consumer_id = reader.id
                and w.partition = (select l.partition from postbus_data.lease as l where l.token = return_later_messages_of_key.token limit 1)
                and w.seq = any (return_later_messages_of_key.seqs)
            union all
            select d.key, d.seq
            from postbus_data.dead_letter as d
            where d.consumer_id = reader.id
                and d.seq = any (return_later_messages_of_key.seqs)
                and reader.on_dead = 'hold'
        ) as f
        group by f.key
    )
    select array_agg(m.seq)
    into later
    from postbus_data.lease as l
    cross join lateral unnest(l.seqs, l.keys) as m (seq, key)
    join failed as f on f.key = m.key and f.first_seq < m.seq
    where l.token = return_later_messages_of_key.token
        and m.seq not in (select unnest(return_later_messages_of_key.seqs));
    if later is null then
        return;
    end if;
    for message in select s.* from postbus_data.settle_messages(reader.id, reader.epoch, return_later_messages_of_key.token, later, null) as s loop
        insert into postbus_data.waiting (consumer_id, partition, seq, key, attempts, due_at, reason)
        values (
            reader.id, message.partition, message.seq, message.key, message.attempt - 1, clock_timestamp(),
            'an earlier message of its key is not done'
        )
        on conflict on constraint waiting_pkey do nothing;
    end loop;
end
$$;

create or replace function postbus_data.schedule_retry(
    reader postbus_data.consumer,
    partition integer,
    seq bigint,
    key text,
    attempts integer,
    delay interval,
    reason text,
    token bigint default null
)
returns void
language plpgsql
volatile
as $$
/*
Handle a failed delivery: the message waits for its next one, or is buried if that was its last.

delay  how long it waits; null means the consumer's backoff.
token  that of its lease, if that has expired: a late ack of it counts until the message is given out again.

Touches  waiting or dead_letter (insert).
*/
begin
    if attempts >= reader.max_deliver then
        perform postbus_data.add_dead_letter(reader, partition, seq, attempts, reason, token);
        return;
    end if;
    insert into postbus_data.waiting (consumer_id, partition, seq, key, attempts, due_at, reason, token)
    values (
        reader.id, partition, seq, key, attempts,
        clock_timestamp() + coalesce(delay, postbus_data.backoff_delay(reader, attempts)),
        reason, token
    )
    on conflict on constraint waiting_pkey do nothing;
end
$$;

create or replace function postbus_data.sweep_consumer(reader postbus_data.consumer)
returns integer
language plpgsql
volatile
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
/*
Turn expired leases into failures, one for each message that was not settled, and move what is due to the redelivery log.

A sweep visits each entry of the two time indexes a few times at most, including dead entries that a held snapshot keeps:
sweep_state says up to which time they were swept. A row that commits slightly behind that time is found by the next sweep. A
row that commits later (a receive or nack in a longer transaction) is found by a look five seconds back, every second, or by a
full sweep each minute. The same holds for rows behind a time in the future, when the clock was set back.

Returns  how many messages became available.
Touches  lease, settled, waiting, saved (delete), waiting, due, dead_letter, sweep_state (insert).
Locks    the consumer's sweep mutex; returns 0 at once when another session holds it. Skips locked leases: somebody is settling
         them.
*/
declare
    now_at timestamptz := clock_timestamp();
    state postbus_data.sweep_state;
    from_time timestamptz;
    is_full boolean;
    is_wide boolean;
    failed integer;
    made integer;
    swept_to timestamptz := now_at;
    positions bigint;
begin
    if not pg_try_advisory_xact_lock(postbus_data.consumer_lock_class(reader.id), postbus_data.consumer_lock('sweep')) then
        return 0;
    end if;
    state := postbus_data.sweep_state_of(reader);
    is_full := state.full_sweep_at < now_at - interval '1 minute' or state.swept_to > now_at + interval '1 second';
    is_wide := is_full or state.wide_sweep_at < now_at - interval '1 second';
    from_time := case
        when is_full then '-infinity'
        when is_wide then state.swept_to - interval '5 seconds'
        else state.swept_to - interval '250 milliseconds'
    end;

    -- Messages published here can be received after the commit: by the next receive, not by the one that called this.
    perform postbus_data.append_scheduled(reader.stream_id);
    failed := postbus_data.expire_leases(reader, from_time, now_at);
    made := failed;
    if reader.ordering = 'none' then
        -- Leases that have just expired may be due at once.
        made := postbus_data.append_due(reader, from_time, clock_timestamp());
    end if;

    if greatest(failed, made) >= 1000 then
        -- Each takes a limited number at once. After an outage or a large redrive there are more, and the next sweep continues
        -- from there.
        swept_to := least(
            now_at,
            (
                select l.deadline
                from postbus_data.lease as l
                where l.consumer_id = reader.id
                    and l.deadline > from_time
                order by l.deadline
                limit 1
            ),
            (
                select w.due_at
                from postbus_data.waiting as w
                where w.consumer_id + 0 = reader.id
                    and w.due_at > from_time
                order by w.due_at
                limit 1
            )
        );
    end if;

    if is_full and reader.retain_dead is not null then
        with gone as (
            delete from postbus_data.dead_letter as d
            where d.consumer_id + 0 = reader.id
                and d.died_at < now_at - reader.retain_dead
            returning d.seq
        )
        delete from postbus_data.saved as s
        where s.consumer_id = reader.id
            and s.seq in (select g.seq from gone as g);
    end if;

    -- Moved only from time to time: an idle consumer that is polled all the time should not write all the time.
    if greatest(failed, made) > 0 or is_wide then
        delete from postbus_data.sweep_state as s
        where s.consumer_id = reader.id
            and s.epoch = reader.epoch
            and s.swept_to = state.swept_to;
        positions := coalesce(postbus_data.position_sum(reader), state.position_sum);
        insert into postbus_data.sweep_state (
            consumer_id, epoch, swept_to, full_sweep_at, wide_sweep_at, position_sum, delivery_rate, timed_out_count
        )
        values (
            reader.id, reader.epoch, swept_to,
            case when is_full then now_at else state.full_sweep_at end,
            case when is_wide then now_at else state.wide_sweep_at end,
            positions,
            least(postbus_data.delivery_rate(state, positions, now_at), 2147483647),
            state.timed_out_count + failed
        );
    end if;
    return made;
end
$$;

create or replace function postbus_data.sweep_now_and_then(reader postbus_data.consumer)
returns boolean
language plpgsql
volatile
as $$
/*
Sweep a consumer that was not swept for a second, so that failed messages do not wait while a stream never runs dry.

Returns  whether it swept.
*/
declare
    now_at timestamptz := clock_timestamp();
begin
    -- If the clock was set back, the last sweep may be in the future.
    if (postbus_data.sweep_state_of(reader)).swept_to between now_at - interval '1 second' and now_at + interval '1 second' then
        return false;
    end if;
    return postbus_data.sweep_consumer(reader) > 0;
end
$$;

create or replace function postbus_data.sweep_state_of(reader postbus_data.consumer)
returns postbus_data.sweep_state
language plpgsql
volatile
as $$
/* The time up to which a consumer was swept; -infinity if never. */
declare
    state postbus_data.sweep_state;
begin
    select s.* into state
    from postbus_data.sweep_state as s
    where s.consumer_id = reader.id
        and s.epoch = reader.epoch
    order by s.swept_to desc
    limit 1;
    if state.swept_to is null then
        state := row(reader.id, reader.epoch, '-infinity', '-infinity', '-infinity', 0, 0, 0);
    end if;
    return state;
end
$$;

create or replace function postbus.sweep(stream text default null)
returns integer
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Redeliver messages whose lease has expired or whose retry is due, for the consumers of one stream or of all streams, and publish
scheduled messages that are due.

Any number of callers may run it; each consumer is swept by one at a time. receive sweeps its own consumer, so a separate sweep is
only needed for wake-ups and for dead letters of consumers that nobody receives from.

Returns  how many messages became available.
Raises   PB404 for an unknown stream.
Touches  lease, settled, waiting (delete), waiting, due, dead_letter, sweep_state (insert); scheduled (delete), the log (insert).
Locks    each consumer's sweep mutex and each stream's schedule, one after the other, until the transaction ends; busy ones are
         skipped.
*/
declare
    reader postbus_data.consumer;
    only_id integer := case when stream is not null then postbus_data.stream_id(stream) end;
    -- In a query it would not be looked up in an index.
    now_at timestamptz := clock_timestamp();
    due_id integer;
    made integer := 0;
begin
    for reader in
        select c.*
        from postbus_data.consumer as c
        left join lateral (
            select s.*, s.swept_to - interval '5 seconds' as from_time
            from postbus_data.sweep_state as s
            where s.consumer_id = c.id
                and s.epoch = c.epoch
            order by s.swept_to desc
            limit 1
        ) as swept on true
        where (only_id is null or c.stream_id = only_id)
            and not c.is_group
            -- Of thousands of consumers most are idle. A sweep of one that has nothing to redeliver would only note that it was there.
            and (
                swept.swept_to is null
                or swept.full_sweep_at < now_at - interval '1 minute'
                or swept.delivery_rate > 0
                or exists (
                    select
                    from postbus_data.lease as l
                    where l.consumer_id = c.id
                        and l.deadline > swept.from_time
                        and l.deadline <= now_at
                )
                or exists (
                    select
                    from postbus_data.waiting as w
                    where w.consumer_id + 0 = c.id
                        and w.due_at > swept.from_time
                        and w.due_at <= now_at
                )
                -- As position_sum, which takes four times as long to call.
                or (
                    select coalesce(sum(coalesce(place.read_to_seq, c.start_after)) * 1024 / c.partition_count, 0)::bigint
                    from generate_series(c.partition_base, c.partition_base + c.partition_count - 1) as p (n)
                    left join lateral (
                        select r.read_to_seq
                        from postbus_data.position as r
                        where r.consumer_id = c.id
                            and r.epoch = c.epoch
                            and r.partition = p.n
                        order by r.read_to_seq desc
                        limit 1
                    ) as place on true
                ) <> swept.position_sum
            )
        order by c.id
    loop
        made := made + postbus_data.sweep_consumer(reader);
    end loop;
    for due_id in
        select s.id
        from postbus_data.stream as s
        where (only_id is null or s.id = only_id)
            and exists (select from postbus_data.scheduled as d where d.stream_id = s.id and d.deliver_at <= now_at)
    loop
        made := made + postbus_data.append_scheduled(due_id);
    end loop;
    return made;
end
$$;

create or replace function postbus_data.pulse(
    stream_ids bigint[],
    seen bigint[],
    caller postbus.caller default postbus.current_caller()
)
returns setof bigint
language sql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/* stream_horizons, as the library of release 0.1.0 calls it. */
    select h from postbus_data.stream_horizons(stream_ids, seen, caller) as h
$$;

create or replace function postbus_data.pulse_of_consumers(
    consumer_ids bigint[],
    caller postbus.caller default postbus.current_caller()
)
returns table (wake boolean, next_seconds double precision)
language sql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/* consumers_to_wake, as the library of release 0.1.0 calls it. */
    select w.wake, w.next_seconds from postbus_data.consumers_to_wake(consumer_ids, caller) as w
$$;

create or replace function postbus_data.receive_batches(
    stream text,
    consumer text,
    max_messages integer,
    ack_wait interval,
    expected_type text,
    ack_ids text[],
    caller postbus.caller default postbus.current_caller()
)
returns table (acked integer, batch postbus_data.batch)
language sql
volatile
security definer
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
set search_path = pg_catalog, pg_temp
as $$
/* ack_and_receive_in_any_session, as the library of release 0.1.0 calls it. */
    select s.acked, s.batch from postbus_data.serve(stream, consumer, max_messages, ack_wait, expected_type, ack_ids, caller) as s
$$;

create or replace function postbus_data.serve(
    stream text,
    consumer text,
    max_messages integer,
    ack_wait interval,
    expected_type text,
    ack_ids text[],
    caller postbus.caller default postbus.current_caller()
)
returns table (acked integer, batch postbus_data.batch)
language sql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
ack_and_receive as the library of release 0.1.0 calls it, until its processes are replaced. With a wait of 0 it received from a
group.
*/
    select
        s.acked,
        row(
            s.lease, s.partition, s.seqs,
            case
                when s.attempts is not null then array(
                    select abs(a.attempt) from unnest(s.attempts) with ordinality as a (attempt, place) order by a.place
                )
            end,
            s.keys, s.data, s.bytes, s.headers, s.published_at
        )::postbus_data.batch
    from postbus_data.ack_and_receive(
        stream, consumer, max_messages, nullif(ack_wait, interval '0'), expected_type, ack_ids, coalesce(ack_wait = interval '0', false), caller
    ) as s
$$;

create or replace function postbus_data.apply_retention(stream_id integer)
returns integer
language plpgsql
volatile
as $$
/*
Apply a stream's retention: move its start, and decide whether it accepts new messages.

Its caller holds the stream's maintenance mutex. If it is killed, either the old start or the new one is in force.

Returns  how many things changed.
Touches  stream (update); replaces the stream's publishing functions when it becomes full, or is no longer full.
*/
declare
    stream postbus_data.stream;
    horizon bigint;
    edge bigint;
    room_edge bigint;
    keep_edge bigint;
    is_full boolean;
    changed integer := 0;
begin
    select s.* into stream from postbus_data.stream as s where s.id = stream_id;
    if num_nonnulls(stream.retain_up_to, stream.max_messages, stream.max_storage) = 0 and not stream.until_acked then
        return 0;
    end if;
    horizon := postbus_data.horizon_of(stream_id);

    -- What must stay, whatever the limits say.
    select min(postbus_data.finished_edge(c, horizon))
    into keep_edge
    from postbus_data.consumer as c
    where c.stream_id = apply_retention.stream_id
        and (c.keep_unread or stream.until_acked);
    keep_edge := least(
        keep_edge,
        horizon + 1,
        -- What the history still refers to.
        (
            select min((select h.first_seq from postbus_data.history as h where h.consumer_id = c.id order by h.first_seq limit 1))
            from postbus_data.consumer as c
            where c.stream_id = apply_retention.stream_id
                and c.keep_history is not null
                and stream.until_acked
        )
    );
    if stream.retain_at_least is not null then
        keep_edge := least(keep_edge, postbus_data.seq_since(stream_id, clock_timestamp() - stream.retain_at_least));
    end if;

    if stream.retain_up_to is not null then
        edge := postbus_data.seq_before(stream_id, clock_timestamp() - stream.retain_up_to) + 1;
    end if;
    if stream.until_acked then
        edge := greatest(edge, keep_edge);
    end if;
    room_edge := postbus_data.room_edge(stream, horizon);
    if stream.when_full = 'evict' then
        edge := greatest(edge, room_edge);
    end if;
    if least(edge, keep_edge) > stream.start_seq and edge is not null then
        edge := least(edge, keep_edge);
        stream.start_seq := postbus_data.move_start(stream_id, edge);
        changed := 1;
    end if;

    is_full := coalesce(room_edge > stream.start_seq, false);
    if is_full <> stream.is_full then
        update postbus_data.stream as s set is_full = not s.is_full where s.id = stream_id;
        perform postbus_data.create_publish_functions(stream_id);
        changed := changed + 1;
    end if;
    return changed;
end
$$;

create or replace function postbus_data.copy_held_messages(stream_id integer, number integer)
returns void
language plpgsql
volatile
as $$
/*
Copy the messages that consumers still hold of a segment that is about to be dropped. Purged messages are not copied.

Its caller has locked the segment's table: no receive can lease more of it, and all that did have committed.
Touches  kept (insert).
*/
declare
    stream postbus_data.stream;
begin
    select s.* into stream from postbus_data.stream as s where s.id = stream_id;
    execute format(
        'insert into postbus_data.kept (stream_id, partition, seq, published_at, expires_at, key, %s, headers)
        select $1, l.partition, l.seq, l.published_at, l.expires_at, l.key, l.data%s, l.headers
        from postbus_data.held_messages($1) as n
        join %s as l on l.partition = n.partition and l.seq = n.seq
        where n.seq >= $2
        on conflict do nothing',
        case stream.data_type when 'bytes' then 'bytes' else 'data' end,
        case stream.data_type when 'bytes' then '' else '::text' end,
        postbus_data.log_table(stream_id, number)
    ) using stream_id, stream.purged_seq;
end
$$;

create or replace function postbus_data.count_edge(stream postbus_data.stream, horizon bigint)
returns bigint
language plpgsql
volatile
set enable_seqscan = off
set enable_bitmapscan = off
as $$
/*
The seq below which messages must go for a stream to stay within max_messages; null when it does.

Seqs are not counts: a crash leaves up to 32 of them unused, and so does each rollback. A stream that keeps few messages would
lose all of them, so up to 10,000 messages are counted, by the index. Above that, the difference between seqs is used.
*/
declare
    edge bigint := horizon - stream.max_messages + 1;
    segment postbus_data.segment;
    -- One more than may stay.
    remaining bigint := least(stream.max_messages, 10000) + 1;
    found_count bigint;
    lowest bigint;
begin
    if (edge > greatest(stream.start_seq, 1)) is not true then
        return null;
    end if;
    if stream.max_messages > 10000 then
        return edge;
    end if;
    for segment in
        select s.*
        from postbus_data.segment as s
        where s.stream_id = stream.id
            and (s.sealed_at is null or s.last_seq >= stream.start_seq)
        order by s.number desc
    loop
        execute format(
            'select count(*), min(m.seq)
            from (
                select m.seq
                from postbus_data.segment_partitions(%s, %s, %s) as p (n)
                cross join lateral (
                    select l.seq from %s as l where l.partition = p.n and l.seq between $1 and $2 order by l.seq desc limit $3
                ) as m
                order by m.seq desc
                limit $3
            ) as m',
            segment.stream_id,
            segment.partition_base,
            segment.partition_count,
            postbus_data.log_table(stream.id, segment.number)
        ) into found_count, lowest using stream.start_seq, horizon, remaining;
        remaining := remaining - found_count;
        if remaining = 0 then
            return lowest + 1;
        end if;
    end loop;
    return null;
end
$$;

create or replace function postbus_data.drop_unneeded(stream_id integer)
returns integer
language plpgsql
volatile
as $$
/*
Delete copied messages that no consumer holds any more. A message is needed without interruption until it is finished: failing
it, leasing it again or parking it each happens in one transaction.

Returns  how many were deleted.
Touches  kept (delete).
*/
declare
    dropped integer := 0;
begin
    if exists (select from postbus_data.kept as k where k.stream_id = drop_unneeded.stream_id) then
        delete from postbus_data.kept as k
        where k.stream_id = drop_unneeded.stream_id
            and not exists (
                select
                from postbus_data.held_messages(drop_unneeded.stream_id) as n
                where n.partition = k.partition
                    and n.seq = k.seq
            );
        get diagnostics dropped = row_count;
    end if;
    return dropped;
end
$$;

create or replace function postbus_data.expire_consumers(stream_id integer)
returns integer
language plpgsql
volatile
as $$
/*
Remove the consumers of a stream that nobody has used for their expire_after, and history older than keep_history.

A receive that found nothing has recorded its use; one by the fast path has moved a position, which is recorded here.

Returns  how many consumers were removed.
Touches  consumer and all its rows (delete), history (delete), consumer_use (insert, delete).
*/
declare
    now_at timestamptz := clock_timestamp();
    reader postbus_data.consumer;
    last_use postbus_data.consumer_use;
    positions bigint;
    removed integer := 0;
begin
    for reader in
        select c.*
        from postbus_data.consumer as c
        where c.stream_id = expire_consumers.stream_id
            and num_nonnulls(c.expire_after, c.keep_history) > 0
    loop
        delete from postbus_data.history as h
        where h.consumer_id = reader.id
            and h.finished_at < now_at - reader.keep_history;
        continue when reader.expire_after is null;

        last_use := postbus_data.last_use_of(reader);
        positions := postbus_data.position_sum(reader);
        if last_use.used_at is null or positions is distinct from last_use.position_sum then
            perform postbus_data.note_use(reader, positions);
        elsif last_use.used_at < clock_timestamp() - reader.expire_after then
            perform postbus.drop_consumer(reader.stream_name, reader.name);
            removed := removed + 1;
        end if;
    end loop;
    return removed;
end
$$;

create or replace function postbus_data.finished_edge(reader postbus_data.consumer, horizon bigint)
returns bigint
language plpgsql
volatile
as $$
/*
The seq, at most the horizon, below which a consumer has read everything and has nothing in flight. Failed and parked messages
do not count: they are copied before their segment is dropped, so that one message that fails for days does not keep a whole
log.
*/
declare
    place integer;
    read_to_seq bigint;
    edge bigint := horizon + 1;
begin
    for place in select u from postbus_data.unread_partitions(reader) as u loop
        select p.read_to_seq into read_to_seq
        from postbus_data.position as p
        where p.consumer_id = reader.id
            and p.epoch = reader.epoch
            and p.partition = place
        order by p.read_to_seq desc
        limit 1;
        read_to_seq := coalesce(
            read_to_seq, greatest(reader.start_after, least(horizon, postbus_data.lane_start(reader.stream_id, place / 100000000 * 100000000)))
        );
        if read_to_seq < edge - 1 then
            edge := least(edge, (postbus_data.fetch_messages(reader.stream_id, place, read_to_seq, edge - 1, 1))[1].seq);
        end if;
    end loop;
    return least(
        edge,
        -- What was passed over, until it is its channel's turn.
        (select min(t.after_seq) + 1 from postbus_data.turn as t where t.consumer_id = reader.id and t.epoch = reader.epoch and reader.by_channel),
        (
            select min(m.seq)
            from postbus_data.lease as l
            cross join lateral unnest(l.seqs) as m (seq)
            where l.consumer_id = reader.id
                and l.epoch = reader.epoch
                and not exists (select from postbus_data.settled as s where s.token = l.token and s.seq = m.seq)
        )
    );
end
$$;

create or replace function postbus_data.held_messages(stream_id integer)
returns table (partition integer, seq bigint)
language sql
volatile
as $$
/* The messages that consumers of a stream hold: in flight and not settled, failed, parked, or due for redelivery. */
    with reader as materialized (
        select c.id, c.epoch from postbus_data.consumer as c where c.stream_id = held_messages.stream_id
    )
    select l.partition, m.seq
    from reader as c
    join postbus_data.lease as l on l.consumer_id = c.id and l.epoch = c.epoch
    cross join lateral unnest(l.seqs) as m (seq)
    where not exists (select from postbus_data.settled as s where s.token = l.token and s.seq = m.seq)
    union
    select w.partition, w.seq from reader as c join postbus_data.waiting as w on w.consumer_id = c.id
    union
    select p.partition, p.seq from reader as c join postbus_data.parked as p on p.consumer_id = c.id and p.epoch = c.epoch
    union
    select d.partition, d.seq from reader as c join postbus_data.due as d on d.consumer_id = c.id and d.epoch = c.epoch
$$;

create or replace function postbus_data.missed_between(stream_id integer, partition integer, after_seq bigint, start_seq bigint, partition_count integer)
returns bigint
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
How many messages of a partition with after_seq < seq < start_seq are gone from the stream. Seqs without a message do not count.

Exact for segments that were dropped whole, and for up to 1,000 messages of each segment that still exists. Above that, and for
part of a dropped segment, it is an estimate that assumes evenly spread messages. Messages of dropped segments count as those of the default level, whatever
theirs was. Segments dropped before counts were kept are
left out.

It runs with the rights of its owner, so that no role needs rights on dropped.
*/
#variable_conflict use_variable
declare
    missed bigint;
    segment record;
    here bigint;
begin
    select coalesce(sum(
        d.counts[partition - d.partition_base + 1]
        * (least(d.last_seq, start_seq - 1) - greatest(d.after_seq, after_seq)) / greatest(1, d.last_seq - d.after_seq)
    ), 0) into missed
    from postbus_data.dropped as d
    where d.stream_id = stream_id
        and d.last_seq > after_seq
        and d.after_seq < start_seq - 1
        and partition between d.partition_base and d.partition_base + cardinality(d.counts) - 1;
    for segment in
        select g.number, greatest(g.after_seq, after_seq) as from_seq, least(coalesce(g.last_seq, start_seq - 1), start_seq - 1) as to_seq
        from postbus_data.segment as g
        where g.stream_id = stream_id
            and (g.last_seq is null or g.last_seq > after_seq)
            and g.after_seq < start_seq - 1
            and mod(partition, 100000000) between g.partition_base and g.partition_base + g.partition_count - 1
    loop
        execute 'select count(*) from (select from ' || postbus_data.log_table(stream_id, segment.number)
            || ' as l where l.partition = $1 and l.seq > $2 and l.seq < $3 limit 1001) as m'
        into here
        using partition, after_seq, start_seq;
        missed := missed + case when here > 1000 then greatest(here, (segment.to_seq - segment.from_seq) / partition_count) else here end;
    end loop;
    return missed;
end
$$;

create or replace function postbus_data.move_start(stream_id integer, new_start bigint)
returns bigint
language plpgsql
volatile
as $$
/*
Drop the messages below a seq. Its caller knows that they are complete.

Returns  the stream's start, which never moves back.
Touches  stream (update).
*/
declare
    start bigint;
begin
    update postbus_data.stream as s
    set start_seq = greatest(s.start_seq, new_start)
    where s.id = stream_id
    returning s.start_seq into start;
    -- The segment that publishers write to is dropped only after the next one is begun.
    update postbus_data.stream as s
    set roll_due = true
    where s.id = stream_id
        and s.start_seq > postbus_data.sequence_value('postbus_data.seq_' || s.id::text)
        -- An empty segment has nothing to free.
        and s.start_seq > 1 + (
            select max(g.after_seq) from postbus_data.segment as g where g.stream_id = s.id
        );
    return start;
end
$$;

create or replace function postbus_data.roll_age(stream postbus_data.stream)
returns interval
language sql
immutable
as $$
/* The age at which a segment is rolled. Only whole segments free space, so an age limit is kept to within a tenth of it. */
    select least(
        stream.segment_age,
        case when stream.retain_up_to is not null then greatest(interval '1 second', stream.retain_up_to / 10) end
    )
$$;

create or replace function postbus_data.roll_bytes(stream postbus_data.stream)
returns bigint
language sql
immutable
as $$
/*
The size at which a segment is rolled. Only whole segments free space, so a storage limit is kept to within a tenth of it, and a
stream with a message limit, or a queue, takes little more space than its messages.
*/
    select least(
        stream.segment_bytes,
        case when stream.max_storage is not null then greatest(65536, stream.max_storage / 10) end,
        case when stream.until_acked or stream.max_messages is not null then 16777216 end
    )
$$;

create or replace function postbus_data.room_edge(stream postbus_data.stream, horizon bigint)
returns bigint
language plpgsql
volatile
as $$
/*
The seq below which messages must go for a stream to stay within max_messages and max_storage; null when it does.

Storage is counted by whole segments, of which at least ten fit into max_storage (see roll_bytes).
*/
declare
    edge bigint;
begin
    if stream.max_storage is not null then
        select max(g.last_seq) + 1
        into edge
        from (
            select
                g.last_seq,
                sum(pg_total_relation_size(to_regclass(postbus_data.log_table(g.stream_id, g.number)))) over (order by g.number desc) as size
            from postbus_data.segment as g
            where g.stream_id = stream.id
        ) as g
        where g.size > stream.max_storage
            and g.last_seq is not null;
    end if;
    return greatest(edge, postbus_data.count_edge(stream, horizon));
end
$$;

create or replace function postbus.create_roles()
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
/*
Create the roles that people and applications can be granted, unless they exist, and give them their rights in this database:
postbus_publisher may publish to all streams, postbus_consumer may receive from all, postbus_reader may read all, and
postbus_owner owns what Postbus stores and may do everything. For rights on one stream see grant_stream.

It must be run by Postbus's owner, with the right to create roles but without superuser. All databases of a server share roles,
but not their rights.

Touches  stream_grant (insert); the owner of, and the rights on, everything in the schemas postbus and postbus_data.
*/
declare
    wanted text;
begin
    foreach wanted in array array['postbus_owner', 'postbus_publisher', 'postbus_consumer', 'postbus_reader'] loop
        if to_regrole(wanted) is null then
            execute format('create role %I nologin', wanted);
        end if;
    end loop;
    perform postbus.grant_stream(null, 'postbus_publisher', 'publish');
    perform postbus.grant_stream(null, 'postbus_consumer', 'consume');
    perform postbus.grant_stream(null, 'postbus_reader', 'read');

    if not pg_has_role(current_user, 'postbus_owner', 'usage') then
        execute format('grant postbus_owner to %I', current_user);
    end if;
    -- It grants usage of the schemas to others.
    grant all on schema postbus, postbus_data to postbus_owner with grant option;
    perform postbus_data.own_objects('postbus_owner');
end
$$;

create or replace function postbus.current_caller()
returns postbus.caller
language plpgsql
stable
as $$
/*
The calling role, signed so that functions that act with their owner's rights can trust it. It is the default of their last
argument.

It runs with the caller's rights and settings. Whatever a caller changes about it only yields a signature that no function
accepts.
*/
begin
    return (select c.caller from postbus_data.current_caller as c);
end
$$;

create or replace function postbus.grant_stream(stream text, role text, may text)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Allow a role to publish to a stream, to consume it (receive and ack, with existing consumers) or to read it. A null stream means
all streams, including future ones.

Raises   PB400 for an unknown right, PB404 for an unknown stream or role.
Touches  stream_grant (insert); grants usage of the schemas, and rights on the stream's functions and log.
*/
declare
    granted integer := case when stream is not null then postbus_data.stream_id(stream) end;
begin
    if may is null or may not in ('publish', 'consume', 'read') then
        raise exception using errcode = 'PB400', message = format('right %L is not one of publish, consume, read', may);
    end if;
    if to_regrole(quote_ident(role)) is null then
        raise exception using errcode = 'PB404', message = format('role "%s" does not exist', role);
    end if;
    insert into postbus_data.stream_grant (stream_id, role, may) values (granted, role, may) on conflict do nothing;
    execute format('grant usage on schema postbus, postbus_data to %I', role);
    perform postbus_data.apply_grants(s.id) from postbus_data.stream as s where s.id = granted or granted is null;
end
$$;

create or replace function postbus_data.apply_grants(stream_id integer)
returns void
language plpgsql
as $$
/*
Grant roles their rights on a stream's current functions and tables, and revoke everybody else's. Called whenever the stream
gets a new object.

A publisher may call the functions that publish to the stream, a consumer the one that receives from it. Consumers and readers
may read its log, because Spark uses COPY: a million messages in a second, where rows returned by a function would be
materialized first. Nobody may write to any table.
*/
declare
    wanted text;
begin
    for wanted in
        select format('revoke execute on function %s from public', o.id::regprocedure)
        from postbus_data.stream_objects(apply_grants.stream_id) as o
        join pg_proc as p on p.oid = o.id and p.proacl is null
        where o.kind = 'function'
        union all
        select format(
            'grant %s on %s %s to %I',
            case o.kind when 'table' then 'select' else 'execute' end, o.kind,
            case o.kind when 'table' then o.id::regclass::text else o.id::regprocedure::text end, r.rolname
        )
        from postbus_data.stream_objects(apply_grants.stream_id) as o
        join postbus_data.stream_grant as g on g.may = any (o.rights)
        -- A role may have been dropped.
        join pg_roles as r on r.rolname = g.role
        where (g.stream_id = apply_grants.stream_id or g.stream_id is null)
            and case o.kind
                when 'table' then not has_table_privilege(r.oid, o.id, 'select')
                else not has_function_privilege(r.oid, o.id, 'execute') or (select p.proacl is null from pg_proc as p where p.oid = o.id)
            end
    loop
        execute wanted;
    end loop;
end
$$;

create or replace function postbus_data.has_right(caller postbus.caller, stream_id integer, variadic rights text[])
returns boolean
language plpgsql
stable
as $$
/*
Whether a caller has one of these rights on a stream. Members of the role that owns Postbus have all of them.

Called by functions that run as that owner, so here current_user is the owner. A signature made for another role, session or
transaction has no rights. Hot: only expressions, and a look at the grants only for callers that are not owners.
*/
#variable_conflict use_variable
declare
    secret bytea := (select k.secret from postbus_data.caller_key as k);
begin
    -- As in the view current_caller.
    if (
        caller.signature
        = sha256(secret || int4send(pg_backend_pid()) || timestamptz_send(transaction_timestamp()) || convert_to(caller.role, 'UTF8'::name) || secret)
    ) is not true then
        return false;
    end if;
    if pg_has_role(caller.role::name, current_user, 'usage') then
        return true;
    end if;
    return exists (
        select
        from postbus_data.stream_grant as g
        -- A role may have been dropped.
        join pg_roles as r on r.rolname = g.role
        where (g.stream_id = stream_id or g.stream_id is null)
            and g.may = any (rights)
            and pg_has_role(caller.role::name, r.oid, 'usage')
    );
end
$$;

create or replace function postbus_data.permitted_consumer(caller postbus.caller, stream text, consumer text)
returns postbus_data.consumer
language plpgsql
stable
as $$
/* The row of a consumer, if the caller may consume its stream. Raises PB403, PB404. */
declare
    found_consumer postbus_data.consumer;
begin
    -- Select the whole row: column by column would take twice as long.
    found_consumer := (
        select c
        from postbus_data.consumer as c
        where c.stream_name = permitted_consumer.stream
            and c.name = permitted_consumer.consumer
    );
    if found_consumer.id is null or not postbus_data.has_right(caller, found_consumer.stream_id, 'consume') then
        perform postbus_data.permitted_stream(caller, stream, 'consume');
        return postbus_data.find_consumer(stream, consumer);
    end if;
    return found_consumer;
end
$$;

create or replace function postbus_data.permitted_group(caller postbus.caller, stream text, "group" text)
returns postbus_data.consumer
language plpgsql
stable
as $$
/* The row of a group, if the caller may consume its stream. Raises PB403, PB404, and PB409 for a consumer that is not a group. */
declare
    found_group postbus_data.consumer;
begin
    found_group := (
        select c
        from postbus_data.consumer as c
        where c.stream_name = permitted_group.stream
            and c.name = permitted_group."group"
    );
    if found_group.id is null or not postbus_data.has_right(caller, found_group.stream_id, 'consume') then
        perform postbus_data.permitted_stream(caller, stream, 'consume');
    end if;
    return postbus_data.find_group(stream, "group");
end
$$;

create or replace function postbus_data.permitted_stream(caller postbus.caller, stream text, variadic rights text[])
returns integer
language plpgsql
stable
as $$
/* The id of a stream on which the caller has one of these rights. Raises PB403, PB404. */
declare
    id integer;
begin
    select s.id into id from postbus_data.stream as s where s.name = permitted_stream.stream;
    if id is null or not postbus_data.has_right(caller, id, variadic rights) then
        perform postbus_data.raise_not_permitted(caller, stream, rights[cardinality(rights)]);
    end if;
    return id;
end
$$;

create or replace function postbus_data.raise_not_permitted(caller postbus.caller, stream text, wanted text)
returns void
language plpgsql
stable
as $$
/*
Raise the error for a caller that lacks a right on a stream: PB403, or PB404 as for an unknown stream when it has no right there
at all.
*/
declare
    known_id integer := (select s.id from postbus_data.stream as s where s.name = raise_not_permitted.stream);
begin
    if known_id is null or not postbus_data.has_right(caller, known_id, 'publish', 'consume', 'read') then
        perform postbus_data.raise_unknown_stream(stream);
    end if;
    raise exception using
        errcode = 'PB403',
        message = format('role "%s" may not %s stream "%s"', caller.role, case wanted when 'publish' then 'publish to' else wanted end, stream),
        hint = format('the owner can allow it: select postbus.grant_stream(%L, %L, %L)', stream, caller.role, wanted);
end
$$;

create or replace function postbus_data.stream_objects(stream_id integer)
returns table (kind text, id oid, rights text[])
language sql
volatile
as $$
/* The functions of a stream and the tables of its log, each with the rights that allow a role to use it. */
    select 'table', to_regclass('postbus_data.log_' || stream_id || '_' || g.number)::oid, array['consume', 'read']
    from postbus_data.segment as g
    where g.stream_id = stream_objects.stream_id
        and to_regclass('postbus_data.log_' || stream_id || '_' || g.number) is not null
    union all
    select 'function', to_regproc('postbus_data.' || o.name)::oid, o.rights
    from (
        values
            ('publish_' || stream_id, array['publish']),
            ('publish_many_' || stream_id, array['publish']),
            ('ack_and_receive_' || stream_id, array['consume']),
            ('ack_' || stream_id, array['consume'])
        union all
        select f.kind || '_' || stream_id || '_' || g.number, '{}'::text[]
        from postbus_data.segment as g
        cross join unnest(array['claim', 'scan_channels', 'read_channel', 'fetch_channels']) as f (kind)
        where g.stream_id = stream_objects.stream_id
    ) as o (name, rights)
    where to_regproc('postbus_data.' || o.name) is not null
$$;

create or replace function postbus.revoke_stream(stream text, role text, may text)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Take back a right that grant_stream gave. A right that the role has by another grant, or as a member of another role, stays.

Raises   PB404 for an unknown stream, or when the role has no such grant.
Touches  stream_grant (delete); revokes rights on the stream's functions and log.
*/
declare
    revoked integer := case when stream is not null then postbus_data.stream_id(stream) end;
    object record;
begin
    delete from postbus_data.stream_grant as g
    where g.stream_id is not distinct from revoked
        and g.role = revoke_stream.role
        and g.may = revoke_stream.may;
    if not found then
        raise exception using
            errcode = 'PB404',
            message = format('role "%s" has no grant to %s stream "%s"', role, may, coalesce(stream, '(all)'));
    end if;
    for object in
        select o.kind, case o.kind when 'table' then o.id::regclass::text else o.id::regprocedure::text end as name
        from postbus_data.stream as s
        cross join lateral postbus_data.stream_objects(s.id) as o
        where (s.id = revoked or revoked is null)
            and to_regrole(quote_ident(role)) is not null
    loop
        execute format('revoke all on %s %s from %I', object.kind, object.name, role);
    end loop;
    perform postbus_data.apply_grants(s.id) from postbus_data.stream as s where s.id = revoked or revoked is null;
end
$$;

create or replace function postbus.alter_schedule(
    stream text,
    name text,
    cron text default null,
    every interval default null,
    time_zone text default null,
    key text default null,
    data text default null,
    headers jsonb default null,
    bytes bytea default null,
    ttl interval default null,
    catch_up text default null,
    max_catch_up integer default null,
    unset text[] default '{}',
    expected_type text default null,
    priority integer default null
)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Change a recurring schedule. A null leaves a setting as it is; cron replaces every, and every replaces cron and begins a new grid.

unset  settings to put back to none: key, headers, ttl.

Raises   PB400 for an invalid setting or message, PB404 for an unknown stream or schedule, PB409 for another data type, PB413 when
         the message is too large.
Touches  schedule (update), scheduled (delete): times that were filled in are worked out again.
Locks    the schedule.
*/
#variable_conflict use_variable
declare
    entry postbus_data.publish_target := postbus_data.begin_publish(stream, expected_type);
    settings postbus_data.schedule := postbus_data.lock_schedule(stream, name);
begin
    if not unset <@ array['key', 'headers', 'ttl'] then
        raise exception using errcode = 'PB400', message = 'unset may name key, headers and ttl';
    end if;
    if cron is not null or every is not null then
        settings.cron := cron;
        settings.every := every;
    end if;
    settings.time_zone := coalesce(time_zone, settings.time_zone);
    settings.key := case when 'key' = any (unset) then null else coalesce(key, settings.key) end;
    settings.data := coalesce(data, settings.data);
    settings.bytes := coalesce(bytes, settings.bytes);
    settings.headers := case when 'headers' = any (unset) then null else coalesce(headers, settings.headers) end;
    settings.ttl := case when 'ttl' = any (unset) then null else coalesce(ttl, settings.ttl) end;
    settings.catch_up := coalesce(catch_up, settings.catch_up);
    settings.max_catch_up := coalesce(max_catch_up, settings.max_catch_up);
    settings.priority := coalesce(priority, settings.priority);
    perform postbus_data.check_schedule(entry, settings);
    update postbus_data.schedule as s
    set cron = settings.cron,
        every = settings.every,
        time_zone = settings.time_zone,
        key = settings.key,
        data = settings.data,
        bytes = settings.bytes,
        headers = settings.headers,
        ttl = settings.ttl,
        catch_up = settings.catch_up,
        max_catch_up = settings.max_catch_up,
        priority = settings.priority,
        created_at = case when every is not null then date_trunc('second', clock_timestamp()) else s.created_at end
    where s.id = settings.id;
    perform postbus_data.refill_schedule(settings.id, keep_due => every is null and not settings.paused);
end
$$;

create or replace function postbus.cancel(stream text, ids bigint[], caller postbus.caller default postbus.current_caller())
returns integer
language sql
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Cancel scheduled messages.

Returns  how many were cancelled; a message that has been published, or is being published, is not counted.
Raises   PB403 without the right to publish, PB404 for an unknown stream.
Touches  scheduled (delete).
*/
    with cancelled as (
        delete from postbus_data.scheduled as s
        where s.stream_id = postbus_data.permitted_stream(caller, stream, 'publish')
            and s.id = any (ids)
        returning s.id
    )
    select count(*)::integer from cancelled
$$;

create or replace function postbus.create_schedule(
    stream text,
    name text,
    cron text default null,
    every interval default null,
    time_zone text default 'UTC',
    key text default null,
    data text default null,
    headers jsonb default null,
    bytes bytea default null,
    ttl interval default null,
    catch_up text default 'latest',
    max_catch_up integer default 100,
    expected_type text default null,
    exist_ok boolean default false,
    priority integer default 4
)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Create a recurring schedule: a message that is published to a stream again and again. Each time is published once, however many
processes run. The times themselves are worked out by the Python library: by a server, a bus, or bus.upkeep, an hour ahead.

cron           five fields (or six, with seconds first), in the time zone. Python checks it; list_schedules shows a problem.
every          instead of cron: an interval of at least a second, on a grid that begins at this second.
key, data, headers, bytes, ttl, priority  the message, as for publish. It gets the headers postbus-schedule and postbus-occurrence.
catch_up       of times that were missed by more than a minute: latest publishes the last one, all up to max_catch_up, skip none.
expected_type  raise PB409 if the stream has another data type; null accepts any.
exist_ok       a schedule that exists is left as it is. What is given must be its own.

Raises   PB400 for an invalid name, setting or message, PB404 for an unknown stream, PB409 when the schedule exists (with exist_ok:
         when it differs) or for another data type, PB413 when the message is too large.
Touches  schedule (insert).
Locks    the horizon of the stream, shared, until the transaction ends.
*/
#variable_conflict use_variable
declare
    entry postbus_data.publish_target := postbus_data.begin_publish(stream, expected_type);
    settings postbus_data.schedule;
    existing postbus_data.schedule;
begin
    settings.stream_id := entry.stream_id;
    settings.name := name;
    settings.cron := cron;
    settings.every := every;
    settings.time_zone := time_zone;
    settings.key := key;
    settings.data := data;
    settings.headers := headers;
    settings.bytes := bytes;
    settings.ttl := ttl;
    settings.catch_up := catch_up;
    settings.max_catch_up := max_catch_up;
    settings.priority := coalesce(priority, 4);
    perform postbus_data.check_schedule(entry, settings);
    insert into postbus_data.schedule as s (
        stream_id, name, cron, every, time_zone, key, data, bytes, headers, ttl, catch_up, max_catch_up, created_at, filled_until, priority
    )
    values (
        entry.stream_id, name, cron, every, time_zone, key, data, bytes, headers, ttl, catch_up, max_catch_up,
        date_trunc('second', clock_timestamp()), clock_timestamp(), settings.priority
    )
    on conflict do nothing;
    if found then
        return;
    end if;
    select s.* into existing from postbus_data.schedule as s where s.stream_id = entry.stream_id and s.name = name;
    if not exist_ok
        or (existing.cron, existing.every, existing.time_zone, existing.key, existing.data, existing.bytes, existing.headers, existing.ttl,
            existing.catch_up, existing.max_catch_up, existing.priority)
            is distinct from (cron, every, time_zone, key, data, bytes, headers, ttl, catch_up, max_catch_up, settings.priority)
    then
        raise exception using
            errcode = 'PB409',
            message = format('schedule "%s" of stream "%s" already exists%s', name, stream, case when exist_ok then ', and differs' else '' end),
            hint = 'change it with alter_schedule, or drop it first';
    end if;
end
$$;

create or replace function postbus.drop_schedule(stream text, name text)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Remove a recurring schedule. What it has published stays.

Raises   PB404 for an unknown stream or schedule.
Touches  schedule, scheduled, schedule_run (delete).
Locks    the schedule.
*/
declare
    dropped postbus_data.schedule := postbus_data.lock_schedule(stream, name);
begin
    delete from postbus_data.schedule as s where s.id = dropped.id;
end
$$;

create or replace function postbus_data.append_scheduled(stream_id integer)
returns integer
language plpgsql
volatile
as $$
/*
Publish the scheduled messages of a stream that are due, in order of their times, at most 1,000 at once.

A message that the stream no longer accepts (its limit was lowered) is put off by a minute, with a warning; the others are
published. Of a recurring schedule, times that were missed are published as its catch_up says.

Returns  how many were published.
Touches  scheduled (delete), schedule_run (insert, delete), the stream's log (insert).
Locks    the stream's schedule; returns 0 at once when another session holds it.
*/
declare
    -- Not in the queries: a volatile function cannot be used for an index lookup, and every scheduled message would be scanned.
    now_at timestamptz := clock_timestamp();
    stream_name text;
    due record;
    recurring postbus_data.schedule;
    published integer := 0;
begin
    if not exists (
        select
        from postbus_data.scheduled as s
        where s.stream_id = append_scheduled.stream_id
            and s.deliver_at <= now_at
    ) or not pg_try_advisory_xact_lock(postbus_data.consumer_lock_class(0), -stream_id)
    then
        return 0;
    end if;
    select s.name into stream_name from postbus_data.stream as s where s.id = stream_id;
    for due in
        select s.*
        from postbus_data.scheduled as s
        where s.stream_id = append_scheduled.stream_id
            and s.deliver_at <= now_at
        order by s.deliver_at, s.id
        limit 1000
        for update skip locked
    loop
        begin
            if due.schedule_id is null then
                perform postbus.publish(stream_name, due.key, due.data, due.headers, due.bytes, ttl => due.ttl, priority => due.priority);
                published := published + 1;
            else
                select s.* into recurring from postbus_data.schedule as s where s.id = due.schedule_id;
                if not postbus_data.is_missed_occurrence(recurring, due.occurrence, now_at) then
                    perform postbus_data.publish_occurrence(stream_name, recurring, due.occurrence);
                    published := published + 1;
                end if;
            end if;
            delete from postbus_data.scheduled as s where s.stream_id = due.stream_id and s.id = due.id;
        exception when sqlstate 'PB400' or sqlstate 'PB413' then
            raise warning 'scheduled message % of stream "%" is put off: %', due.id, stream_name, sqlerrm;
            update postbus_data.scheduled as s
            set deliver_at = clock_timestamp() + interval '1 minute'
            where s.stream_id = due.stream_id
                and s.id = due.id;
        end;
    end loop;
    return published;
end
$$;

create or replace function postbus_data.check_schedule(entry postbus_data.publish_target, settings postbus_data.schedule)
returns void
language plpgsql
as $$
/* Raise PB400 or PB413 for settings or a message that a recurring schedule cannot have. Cron and time zone are checked by Python. */
declare
    problem text;
begin
    perform postbus_data.check_name('schedule', settings.name);
    problem := case
        when num_nonnulls(settings.cron, settings.every) <> 1 then 'a schedule has either cron or every'
        when length(settings.cron) > 200 then 'cron has more than 200 characters'
        when settings.every not between interval '1 second' and interval '3650 days'
            then format('every = %s is not between 1 second and 3650 days', settings.every)
        when settings.time_zone is null or length(settings.time_zone) not between 1 and 100 then 'time_zone is missing'
        when (settings.catch_up in ('latest', 'skip', 'all')) is not true
            then format('catch_up = %L is not one of latest, skip, all', settings.catch_up)
        when settings.priority not between 0 and 9 then format('priority = %s is not between 0 and 9', settings.priority)
        when (settings.max_catch_up between 1 and 1000) is not true
            then format('max_catch_up = %s is not between 1 and 1000', settings.max_catch_up)
    end;
    if problem is not null then
        raise exception using errcode = 'PB400', message = problem;
    end if;
    perform postbus_data.check_ttl(settings.ttl);
    perform postbus_data.raise_invalid_message(entry, null, settings.key, settings.data, settings.headers, settings.bytes);
    if entry.data_type = 'json' then
        perform postbus_data.as_json(settings.data, null);
    end if;
end
$$;

create or replace function postbus_data.fill_schedule(
    schedule_id integer,
    version integer,
    filled_from timestamptz,
    filled_until timestamptz,
    occurrences timestamptz[],
    problem text default null
)
returns boolean
language plpgsql
volatile
as $$
/*
Fill in times of a recurring schedule, unless it has changed or somebody was faster. So each time is filled in once, whoever works it out.

filled_from  up to where it was filled in.
problem      why no times can be worked out: the schedule rests until it is altered.

Returns  whether this call did it.
Touches  schedule (update), scheduled (insert).
Locks    the schedule.
*/
#variable_conflict use_variable
declare
    filled postbus_data.schedule;
begin
    update postbus_data.schedule as s
    set filled_until = filled_until,
        problem = problem
    where s.id = schedule_id
        and s.version = version
        and s.filled_until = filled_from
        and not s.paused
    returning s.* into filled;
    if filled.id is null then
        return false;
    end if;
    insert into postbus_data.scheduled (stream_id, deliver_at, schedule_id, occurrence)
    select filled.stream_id, o.at, filled.id, o.at
    from unnest(occurrences) as o (at)
    on conflict do nothing;
    return true;
end
$$;

create or replace function postbus_data.is_missed_occurrence(missed postbus_data.schedule, occurrence timestamptz, now_at timestamptz)
returns boolean
language plpgsql
volatile
as $$
/* Whether a time of a recurring schedule passed more than a minute ago, and is not to be caught up on. See create_schedule. */
begin
    if occurrence >= now_at - interval '1 minute' then
        return false;
    end if;
    return case missed.catch_up
        when 'skip' then true
        when 'latest' then exists (
            select
            from postbus_data.scheduled as s
            where s.schedule_id = missed.id
                and s.occurrence > is_missed_occurrence.occurrence
                and s.occurrence <= now_at
        )
        else (
            select count(*) >= missed.max_catch_up
            from (
                select
                from postbus_data.scheduled as s
                where s.schedule_id = missed.id
                    and s.occurrence > is_missed_occurrence.occurrence
                    and s.occurrence <= now_at
                limit missed.max_catch_up
            ) as later
        )
    end;
end
$$;

create or replace function postbus_data.lock_schedule(stream text, name text)
returns postbus_data.schedule
language plpgsql
as $$
/*
The recurring schedule with that name, locked until the transaction ends. Raises PB404 for an unknown stream or schedule.
*/
declare
    locked postbus_data.schedule;
    locked_stream integer := postbus_data.stream_id(stream);
begin
    select s.* into locked
    from postbus_data.schedule as s
    where s.stream_id = locked_stream
        and s.name = lock_schedule.name
    for update;
    if locked.id is null then
        raise exception using
            errcode = 'PB404',
            message = format('schedule "%s" of stream "%s" does not exist', name, stream);
    end if;
    return locked;
end
$$;

create or replace function postbus_data.publish_occurrence(stream text, wanted postbus_data.schedule, occurrence timestamptz)
returns bigint
language plpgsql
volatile
as $$
/*
Publish the message of a recurring schedule, for one of its times or (null) on request.

Returns  the message's seq.
Touches  schedule_run (insert, delete), and what postbus.publish touches.
*/
declare
    seq bigint;
begin
    seq := postbus.publish(
        stream, wanted.key, wanted.data,
        coalesce(wanted.headers, '{}') || jsonb_strip_nulls(jsonb_build_object(
            'postbus-schedule', wanted.name,
            'postbus-occurrence', to_char(occurrence at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
        )),
        wanted.bytes, ttl => wanted.ttl, priority => wanted.priority
    );
    insert into postbus_data.schedule_run (schedule_id, occurrence, seq) values (wanted.id, occurrence, abs(seq));
    delete from postbus_data.schedule_run as r
    where r.schedule_id = wanted.id
        and r.n < (
            select last.n
            from postbus_data.schedule_run as last
            where last.schedule_id = wanted.id
            order by last.n desc
            offset 19
            limit 1
        );
    return seq;
end
$$;

create or replace function postbus_data.refill_schedule(schedule_id integer, keep_due boolean default false)
returns void
language plpgsql
as $$
/*
Forget the times that were filled in for a schedule, so that they are worked out again from now on.

keep_due  or from the first time that is due and not published yet.

Touches  schedule (update), scheduled (delete).
*/
declare
    first_at timestamptz := clock_timestamp();
begin
    with forgotten as (
        delete from postbus_data.scheduled as s where s.schedule_id = refill_schedule.schedule_id returning s.occurrence
    )
    select least(first_at, min(f.occurrence) filter (where keep_due) - interval '1 microsecond')
    into first_at
    from forgotten as f;
    update postbus_data.schedule as s
    set version = s.version + 1,
        filled_until = first_at,
        problem = null
    where s.id = refill_schedule.schedule_id;
end
$$;

create or replace function postbus_data.schedule(
    entry postbus_data.publish_target,
    place integer,
    deliver_at timestamptz,
    ttl interval,
    key text,
    data text,
    headers jsonb,
    bytes bytea,
    priority integer default null
)
returns bigint
language plpgsql
as $$
/*
Store a message until its time. It is checked as if it were published now.

Returns  its schedule id.
Raises   as publish, and PB400 for an infinite time.
Touches  scheduled (insert).
*/
declare
    new_id bigint;
begin
    perform postbus_data.raise_invalid_message(entry, place, key, data, headers, bytes);
    if entry.data_type = 'json' then
        perform postbus_data.as_json(data, place);
    end if;
    if not isfinite(deliver_at) then
        raise exception using errcode = 'PB400', message = format('deliver_at = %s is not a time', deliver_at);
    end if;
    insert into postbus_data.scheduled (stream_id, deliver_at, ttl, key, data, bytes, headers, priority)
    values (entry.stream_id, deliver_at, ttl, key, data, bytes, headers, coalesce(priority, 4))
    returning id into new_id;
    return new_id;
end
$$;

create or replace function postbus_data.schedules_to_fill()
returns table (
    id integer,
    version integer,
    cron text,
    every interval,
    time_zone text,
    catch_up text,
    max_catch_up integer,
    created_at timestamptz,
    filled_until timestamptz,
    now_at timestamptz
)
language sql
volatile
as $$
/* Recurring schedules whose times have to be worked out: those that are filled in for less than half an hour. */
    select s.id, s.version, s.cron, s.every, s.time_zone, s.catch_up, s.max_catch_up, s.created_at, s.filled_until, clock_timestamp()
    from postbus_data.schedule as s
    where not s.paused
        and s.problem is null
        and s.filled_until < clock_timestamp() + interval '30 minutes'
    order by s.filled_until
    limit 100
$$;

create or replace function postbus.list_scheduled(
    stream text,
    key_pattern text default null,
    after_at timestamptz default null,
    after_id bigint default null,
    max_messages integer default 100,
    caller postbus.caller default postbus.current_caller()
)
returns table (
    id bigint,
    deliver_at timestamptz,
    scheduled_at timestamptz,
    ttl interval,
    key text,
    data text,
    bytes bytea,
    headers jsonb,
    priority integer
)
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
The scheduled messages of a stream, the next one due first. Times of recurring schedules are not among them; see list_schedules.

after_at, after_id  only messages after this one: the last of the previous page.

Raises   PB400 for an argument out of range or an invalid pattern, PB403 without the right to publish, PB404 for an unknown
         stream.
*/
#variable_conflict use_column
declare
    listed integer := postbus_data.permitted_stream(caller, stream, 'publish');
    regex text := postbus_data.pattern_regex(key_pattern);
begin
    if max_messages is null or max_messages not between 1 and 10000 then
        raise exception using
            errcode = 'PB400',
            message = format('max_messages = %s is not between 1 and 10000', coalesce(max_messages::text, 'null'));
    end if;
    return query
    select s.id, s.deliver_at, s.scheduled_at, s.ttl, s.key, s.data, s.bytes, s.headers, s.priority
    from postbus_data.scheduled as s
    where s.stream_id = listed
        and s.schedule_id is null
        and (after_at is null or (s.deliver_at, s.id) > (after_at, coalesce(after_id, 0)))
        and (regex is null or s.key ~ regex)
    order by s.deliver_at, s.id
    limit max_messages;
end
$$;

create or replace function postbus.list_schedules(
    stream text default null,
    name text default null,
    caller postbus.caller default postbus.current_caller()
)
returns setof postbus.schedule_info
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Recurring schedules, with their last five runs: of a stream, or of all that the caller may publish to or read; or only that with a name.

Raises   PB403 without a right on the stream, PB404 for an unknown stream.
*/
#variable_conflict use_variable
declare
    only_id integer := case when stream is not null then postbus_data.permitted_stream(caller, stream, 'publish', 'consume', 'read') end;
begin
    return query
    select
        t.name, s.name, s.cron, s.every, s.time_zone, s.key, s.data, s.bytes, s.headers, s.ttl, s.catch_up, s.max_catch_up, s.paused, s.problem,
        s.created_at, t.data_type, clock_timestamp(),
        coalesce(
            (
                select jsonb_agg(
                    jsonb_build_object('occurrence', r.occurrence, 'published_at', r.published_at, 'seq', r.seq) order by r.n desc
                )
                from (
                    select run.* from postbus_data.schedule_run as run where run.schedule_id = s.id order by run.n desc limit 5
                ) as r
            ),
            '[]'
        ),
        s.priority
    from postbus_data.schedule as s
    join postbus_data.stream as t on t.id = s.stream_id
    where (only_id is null or s.stream_id = only_id)
        and (name is null or s.name = name)
        and (only_id is not null or postbus_data.has_right(caller, s.stream_id, 'publish', 'consume', 'read'))
    order by t.name, s.name;
end
$$;

create or replace function postbus.pause_schedule(stream text, name text)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Stop a recurring schedule until it is resumed. Times that pass while it is paused are not published later.

Raises   PB404 for an unknown stream or schedule.
Touches  schedule (update), scheduled (delete).
Locks    the schedule.
*/
declare
    paused postbus_data.schedule := postbus_data.lock_schedule(stream, name);
begin
    update postbus_data.schedule as s set paused = true where s.id = paused.id;
    perform postbus_data.refill_schedule(paused.id);
end
$$;

create or replace function postbus.reschedule(
    stream text,
    ids bigint[],
    deliver_at timestamptz,
    caller postbus.caller default postbus.current_caller()
)
returns integer
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Give scheduled messages another time. A past time publishes them at the next sweep.

Returns  how many were rescheduled; a message that has been published is not counted.
Raises   PB400 for a missing or infinite time, PB403 without the right to publish, PB404 for an unknown stream.
Touches  scheduled (update).
*/
#variable_conflict use_column
declare
    moved integer;
begin
    if isfinite(reschedule.deliver_at) is not true then
        raise exception using errcode = 'PB400', message = format('deliver_at = %s is not a time', coalesce(reschedule.deliver_at::text, 'null'));
    end if;
    update postbus_data.scheduled as s
    set deliver_at = reschedule.deliver_at
    where s.stream_id = postbus_data.permitted_stream(caller, stream, 'publish')
        and s.id = any (ids);
    get diagnostics moved = row_count;
    return moved;
end
$$;

create or replace function postbus.resume_schedule(stream text, name text)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Continue a recurring schedule that was paused, from now on. Nothing happens to one that is not paused.

Raises   PB404 for an unknown stream or schedule.
Touches  schedule (update).
Locks    the schedule.
*/
declare
    resumed postbus_data.schedule := postbus_data.lock_schedule(stream, name);
begin
    if resumed.paused then
        update postbus_data.schedule as s set paused = false where s.id = resumed.id;
        perform postbus_data.refill_schedule(resumed.id);
    end if;
end
$$;

create or replace function postbus.run_schedule(stream text, name text)
returns bigint
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Publish the message of a recurring schedule now, also when it is paused. Its times stay as they are.

Returns  the message's seq.
Raises   PB404 for an unknown stream or schedule, and as publish.
Touches  schedule_run (insert, delete), and what postbus.publish touches.
Locks    the schedule, and what postbus.publish locks.
*/
declare
    wanted postbus_data.schedule := postbus_data.lock_schedule(stream, name);
begin
    return postbus_data.publish_occurrence(stream, wanted, null);
end
$$;

create or replace function postbus_data.advance_segment(stream_id integer, sequence regclass)
returns integer
language plpgsql
volatile
as $$
/*
Begin the next segment: point publishers at one that is prepared and committed, or prepare one when the current one is due.

It waits until all earlier segments are sealed, so that a seq lies in one of at most two. A publisher that stays open for days
makes the current segment longer, and blocks nobody.
*/
declare
    layout bigint := pg_sequence_last_value(to_regclass('postbus_data.layout_' || stream_id));
    current_number integer := postbus_data.layout_segment(layout);
    next_segment postbus_data.segment;
    due boolean;
begin
    if exists (
        select
        from postbus_data.segment as s
        where s.stream_id = advance_segment.stream_id
            and s.number < current_number
            and s.sealed_at is null
    ) then
        return 0;
    end if;

    select s.* into next_segment
    from postbus_data.segment as s
    where s.stream_id = advance_segment.stream_id
        and s.number = current_number + 1;
    if next_segment.number is not null then
        if next_segment.prepared_by = pg_current_xact_id() then
            return 0;
        end if;
        -- A publisher that reads the new register draws its seqs after this.
        update postbus_data.segment as s
        set after_seq = pg_sequence_last_value(sequence)
        where s.stream_id = advance_segment.stream_id
            and s.number = next_segment.number;
        perform postbus_data.set_layout(
            stream_id, next_segment.number, next_segment.partition_base, next_segment.partition_count
        );
        perform postbus_data.create_publish_functions(stream_id);
        perform postbus_data.create_receive_function(stream_id);
        return 1;
    end if;

    select g.after_seq < pg_sequence_last_value(sequence)
        and (
            -- In the future, if the clock was set back.
            g.prepared_at not between clock_timestamp() - postbus_data.roll_age(s) and clock_timestamp() + interval '1 minute'
            or pg_total_relation_size(to_regclass(postbus_data.log_table(g.stream_id, g.number))) >= postbus_data.roll_bytes(s)
            or s.roll_due
        )
    into due
    from postbus_data.segment as g
    join postbus_data.stream as s on s.id = g.stream_id
    where g.stream_id = advance_segment.stream_id
        and g.number = current_number;
    if due then
        update postbus_data.stream as s set roll_due = false where s.id = stream_id and s.roll_due;
        perform postbus_data.prepare_segment(
            stream_id, current_number + 1, postbus_data.layout_base(layout), postbus_data.layout_count(layout)
        );
        return 1;
    end if;
    return 0;
end
$$;

create or replace function postbus_data.bisect_time(
    segment postbus_data.segment,
    partition integer,
    at timestamptz,
    out before_seq bigint,
    out since_seq bigint
)
language plpgsql
volatile
set enable_seqscan = off
set enable_bitmapscan = off
as $$
/*
Where a partition of a segment passes a time: the seq of the last message before it (the segment's lower bound if there is
none), and the seq of the first message at or after it (null if there is none). Both are null for a segment dropped meanwhile.
*/
declare
    high bigint;
    middle bigint;
    probe record;
begin
    before_seq := segment.after_seq;
    high := coalesce(
        segment.last_seq, postbus_data.sequence_value('postbus_data.seq_' || segment.stream_id::text)
    );
    while before_seq < high loop
        middle := before_seq + (high - before_seq) / 2;
        execute format(
            'select l.seq, l.published_at from %s as l where l.partition = $1 and l.seq > $2 order by l.seq limit 1',
            postbus_data.log_table(segment.stream_id, segment.number)
        ) into probe using partition, middle;
        if probe.seq <= high and probe.published_at < at then
            before_seq := probe.seq;
        else
            since_seq := least(since_seq, case when probe.published_at >= at then probe.seq end);
            high := middle;
        end if;
    end loop;
exception when undefined_table then
    before_seq := segment.after_seq;
    since_seq := null;
end
$$;

create or replace function postbus_data.create_claim_function(stream_id integer, number integer, data_type text)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
/*
Write the function postbus_data.claim_<stream id>_<number>, which leases messages of one partition in one segment, or only reads them.

Its queries are planned once for a session. Planned at each receive, reading took ten times as long (docs/decisions/0008).
It lives and goes with the segment's table.
*/
declare
    stream postbus_data.stream;
begin
    select s.* into stream from postbus_data.stream as s where s.id = stream_id;
    execute postbus_data.render(
        postbus_data.claim_segment_template(),
        jsonb_build_object(
            'stream_id', stream_id,
            'segment', number,
            'log_table', postbus_data.log_table(stream_id, number),
            -- So many messages fit into an array, however large each is.
            'array_limit', 900000000 / stream.max_message_bytes,
            'is_unversioned', not stream.one_message_per_key,
            'data_column', case data_type when 'bytes' then 'bytes' else 'data' end,
            'data_type', case data_type when 'bytes' then 'bytea' else 'text' end,
            'matches_data', case data_type
                when 'json' then $match$(
                reader.filter_data is null
                or coalesce(jsonb_path_query_first(postbus_data.as_jsonb(l.data::text), reader.filter_data, '{}', true), 'false') not in ('false', 'null')
            )$match$
                else 'true'
            end,
            'is_current', case
                when stream.one_message_per_key
                then format('exists (select from postbus_data.state_%s as t where t.key = l.key and t.seq = l.seq)', stream_id)
                else 'true'
            end
        )
    );
    if stream.channel_tokens is not null then
        perform postbus_data.create_channel_functions(stream, number);
    end if;
end
$$;

create or replace function postbus_data.drop_purged_segments(stream_id integer)
returns integer
language plpgsql
volatile
as $$
/*
Drop sealed segments whose messages are all gone. Messages that a consumer still holds are copied first.

Locks    each table exclusively, if that is possible at once: a reader in a long transaction puts it off to the next call, so
         that nobody has to wait behind this one.
*/
declare
    purged_number integer;
    step_count integer := 0;
begin
    for purged_number in
        select g.number
        from postbus_data.segment as g
        join postbus_data.stream as s on s.id = g.stream_id
        where g.stream_id = drop_purged_segments.stream_id
            and g.last_seq < s.start_seq
        order by g.number
        -- Each takes several entries of the server's lock table.
        limit 50
    loop
        begin
            execute format('lock table %s in access exclusive mode nowait', postbus_data.log_table(stream_id, purged_number));
            perform postbus_data.copy_held_messages(stream_id, purged_number);
            perform postbus_data.note_dropped(stream_id, purged_number);
            perform postbus_data.drop_segment(stream_id, purged_number);
            step_count := step_count + 1;
        exception when lock_not_available then
            null;
        end;
    end loop;
    return step_count;
end
$$;

create or replace function postbus_data.drop_segment(stream_id integer, number integer)
returns void
language plpgsql
as $$
/* Drop a segment's table, its claimer and its row. Its caller has the table locked, or is dropping the stream. */
begin
    execute format('drop table %s', postbus_data.log_table(stream_id, number));
    execute format(
        'drop function if exists postbus_data.claim_%1$s_%2$s, postbus_data.scan_channels_%1$s_%2$s, postbus_data.read_channel_%1$s_%2$s,
        postbus_data.fetch_channels_%1$s_%2$s',
        stream_id, number
    );
    delete from postbus_data.segment as g
    where g.stream_id = drop_segment.stream_id
        and g.number = drop_segment.number;
end
$$;

create or replace function postbus_data.layout_base(layout bigint)
returns integer
language sql
immutable parallel safe
as $$
/* The first of the partitions that publishers write to, as a layout register says: see set_layout. Written to be inlined. */
    select ((layout >> 11) & 16777215)::integer
$$;

create or replace function postbus_data.layout_count(layout bigint)
returns integer
language sql
immutable parallel safe
as $$
/* How many partitions publishers write to, as a layout register says: see pack_layout. Written to be inlined. */
    select (((layout - 1) & 1023) + 1)::integer
$$;

create or replace function postbus_data.layout_segment(layout bigint)
returns integer
language sql
immutable parallel safe
as $$
/* The segment that publishers write to, as a layout register says: see set_layout. Written to be inlined. */
    select (layout >> 35)::integer
$$;

create or replace function postbus_data.log_table(stream_id integer, number integer)
returns text
language sql
immutable parallel safe
as $$
/* The qualified name of a segment's table. */
    select 'postbus_data.log_' || stream_id::text || '_' || number::text
$$;

create or replace function postbus_data.maintain_log(stream_id integer)
returns integer
language plpgsql
volatile
as $$
/*
Take the maintenance steps that are due on one stream.

A roll takes two calls, because the next segment must be committed before publishers are pointed at it: one call prepares it,
and a later transaction advances the register. A crash may follow any step: what the register says is recorded in the next call,
and a bound that is recorded late is only more conservative.

Touches  segment (insert, update, delete), the layout register; creates and drops segments' tables.
Locks    the stream's maintenance mutex; returns 0 at once when another session holds it.
*/
declare
    sequence regclass := to_regclass('postbus_data.seq_' || stream_id);
    step_count integer := 0;
begin
    perform postbus_data.check_isolation();
    if sequence is null or not pg_try_advisory_xact_lock(postbus_data.consumer_lock_class(0), stream_id) then
        return 0;
    end if;
    step_count := postbus_data.repair_layout(stream_id) + postbus_data.seal_segments(stream_id, sequence);
    step_count := step_count + postbus_data.advance_segment(stream_id, sequence);
    step_count := step_count + postbus_data.refresh_levels(stream_id);
    step_count := step_count + postbus_data.maintain_dedup(stream_id, sequence);
    step_count := step_count + postbus_data.expire_consumers(stream_id);
    step_count := step_count + postbus_data.apply_retention(stream_id);
    step_count := step_count + postbus_data.drop_purged_segments(stream_id);
    step_count := step_count + postbus_data.drop_unneeded(stream_id);
    step_count := step_count + postbus_data.compact_segments(stream_id, sequence);
    return step_count;
end
$$;

create or replace function postbus_data.next_seq(stream_id integer, after_seq bigint)
returns bigint
language plpgsql
volatile
set enable_seqscan = off
set enable_bitmapscan = off
as $$
/*
The seq of the first message above a seq, or null: one index probe per partition in at most two segments that have messages.

It looks past the horizon; callers compare.
*/
declare
    segment postbus_data.segment;
    candidate bigint;
    found_seq bigint;
begin
    for segment in
        select s.*
        from postbus_data.segment as s
        where s.stream_id = next_seq.stream_id
            and (s.last_seq > next_seq.after_seq or s.sealed_at is null)
        order by s.number
    loop
        exit when found_seq <= segment.after_seq;
        begin
            execute format(
                'select min(m.seq)
                from postbus_data.segment_partitions(%s, %s, %s) as p (n)
                cross join lateral (
                    select l.seq from %s as l where l.partition = p.n and l.seq > $1 order by l.seq limit 1
                ) as m',
                segment.stream_id,
                segment.partition_base,
                segment.partition_count,
                postbus_data.log_table(stream_id, segment.number)
            ) into candidate using after_seq;
        exception when undefined_table then
            candidate := null; -- Purged and dropped meanwhile.
        end;
        found_seq := least(found_seq, candidate);
    end loop;
    return found_seq;
end
$$;

create or replace function postbus_data.note_dropped(stream_id integer, number integer)
returns void
language plpgsql
volatile
as $$
/*
Record how many messages of each partition, of all levels together, a sealed segment holds that is about to be dropped.

Touches  the segment's table (read), dropped (insert; update and delete of the oldest).
*/
#variable_conflict use_variable
declare
    segment postbus_data.segment := (select g from postbus_data.segment as g where g.stream_id = stream_id and g.number = number);
    oldest postbus_data.dropped[];
    counts bigint[];
begin
    execute format(
        'select array_agg(coalesce(c.count, 0) order by p.n)
        from generate_series(0, %s) as p (n)
        left join (select mod(l.partition, 100000000) as partition, count(*) as count from %s as l group by 1) as c on c.partition = p.n + %s',
        segment.partition_count - 1, postbus_data.log_table(stream_id, number), segment.partition_base
    ) into counts;
    insert into postbus_data.dropped (stream_id, number, partition_base, after_seq, last_seq, counts)
    values (stream_id, number, segment.partition_base, segment.after_seq, segment.last_seq, counts)
    on conflict do nothing;

    if (select count(*) > 100 from postbus_data.dropped as d where d.stream_id = stream_id) then
        oldest := array(select d from postbus_data.dropped as d where d.stream_id = stream_id order by d.number limit 2);
        delete from postbus_data.dropped as d where d.stream_id = stream_id and d.number = oldest[1].number;
        -- Of a former layout: its partitions are no more.
        update postbus_data.dropped as d
        set after_seq = oldest[1].after_seq,
            last_seq = case when 0 < any (d.counts) then d.last_seq else oldest[1].last_seq end,
            counts = array(select a.count + b.count
                from unnest(oldest[1].counts) with ordinality as a (count, place)
                join unnest(oldest[2].counts) with ordinality as b (count, place) using (place)
                order by place)
        where d.stream_id = stream_id
            and d.number = oldest[2].number
            and oldest[1].partition_base = oldest[2].partition_base;
    end if;
end
$$;

create or replace function postbus_data.prepare_segment(stream_id integer, number integer, partition_base integer, partition_count integer)
returns void
language plpgsql
as $$
/*
Create the table of a segment. Publishers write to it once the layout register names it, which must not happen before
this transaction has committed: until then they could not see the table.

Touches  segment (insert); creates postbus_data.log_<stream id>_<number> and its claimer.
*/
declare
    data_type text;
    channel_tokens integer;
begin
    select case s.data_type when 'bytes' then 'bytea' else s.data_type end, s.channel_tokens
    into data_type, channel_tokens
    from postbus_data.stream as s
    where s.id = prepare_segment.stream_id;

    -- Wide columns last. The key's collation is C: comparisons are by byte, as tokens and prefixes need.
    execute format(
        'create table postbus_data.log_%1$s_%2$s (
            seq bigint not null,
            published_at timestamptz not null,
            partition integer not null,
            key text collate "C",
            data %3$s not null,
            headers jsonb,
            expires_at timestamptz,
            primary key (partition, seq)
        )',
        stream_id, number, data_type
    );
    if channel_tokens is not null then
        -- To read one channel.
        execute format('create index on %s ((%s), seq)', postbus_data.log_table(stream_id, number), postbus_data.channel_expression('key', channel_tokens));
    end if;
    perform postbus_data.create_claim_function(stream_id, number, case data_type when 'bytea' then 'bytes' else data_type end);
    insert into postbus_data.segment (stream_id, number, partition_base, partition_count, after_seq)
    values (
        stream_id, number, partition_base, partition_count,
        pg_sequence_last_value(to_regclass('postbus_data.seq_' || stream_id))
    );
    perform postbus_data.apply_grants(stream_id);
end
$$;

create or replace function postbus_data.previous_seq(stream_id integer, up_to_seq bigint)
returns bigint
language plpgsql
volatile
set enable_seqscan = off
set enable_bitmapscan = off
as $$
/* The seq of the last message at or below a seq, or null: the mirror of next_seq. */
declare
    segment postbus_data.segment;
    candidate bigint;
    found_seq bigint;
begin
    for segment in
        select s.*
        from postbus_data.segment as s
        where s.stream_id = previous_seq.stream_id
            and s.after_seq < up_to_seq
        order by s.number desc
    loop
        exit when found_seq >= segment.last_seq;
        begin
            execute format(
                'select max(m.seq)
                from postbus_data.segment_partitions(%s, %s, %s) as p (n)
                cross join lateral (
                    select l.seq from %s as l where l.partition = p.n and l.seq <= $1 order by l.seq desc limit 1
                ) as m',
                segment.stream_id,
                segment.partition_base,
                segment.partition_count,
                postbus_data.log_table(stream_id, segment.number)
            ) into candidate using up_to_seq;
        exception when undefined_table then
            candidate := null; -- Purged and dropped meanwhile.
        end;
        found_seq := greatest(found_seq, candidate);
    end loop;
    return found_seq;
end
$$;

create or replace function postbus_data.repair_layout(stream_id integer)
returns integer
language plpgsql
volatile
as $$
/*
Point publishers at the newest segment when the register names one that does not exist: a dump may hold a register that had
moved on while the tables were being dumped.
*/
declare
    named integer := postbus_data.layout_segment(pg_sequence_last_value(to_regclass('postbus_data.layout_' || stream_id)));
    newest postbus_data.segment;
begin
    select s.* into newest
    from postbus_data.segment as s
    where s.stream_id = repair_layout.stream_id
    order by s.number desc
    limit 1;
    if (named > newest.number) is not true then
        return 0;
    end if;
    perform from postbus_data.stream as s where s.id = stream_id for update;
    perform postbus_data.set_layout(stream_id, newest.number, newest.partition_base, newest.partition_count);
    perform postbus_data.create_publish_functions(stream_id);
    perform postbus_data.create_receive_function(stream_id);
    return 1;
end
$$;

create or replace function postbus_data.repartition(stream_id integer, partition_count integer)
returns void
language plpgsql
volatile
as $$
/*
Prepare a segment with another number of partitions: publishers are pointed at it when maintenance begins it.

Raises   PB409 when partitions cannot be numbered any further.
Touches  segment (insert, update); creates its table.
Locks    the stream's maintenance mutex, until the transaction ends.
*/
#variable_conflict use_variable
declare
    layout bigint;
    new_base integer;
begin
    perform pg_advisory_xact_lock(postbus_data.consumer_lock_class(0), stream_id);
    layout := postbus_data.sequence_value('postbus_data.layout_' || stream_id::text);
    new_base := postbus_data.layout_base(layout);
    if partition_count <> postbus_data.layout_count(layout) then
        new_base := new_base + postbus_data.layout_count(layout);
    end if;
    if new_base + partition_count > 16777215 then
        raise exception using errcode = 'PB409', message = 'this stream''s partitions cannot be renumbered any further', hint = 'create another stream';
    end if;
    -- Perhaps one is prepared already.
    update postbus_data.segment as s
    set partition_base = new_base,
        partition_count = partition_count
    where s.stream_id = stream_id
        and s.number = postbus_data.layout_segment(layout) + 1;
    if not found and partition_count <> postbus_data.layout_count(layout) then
        perform postbus_data.prepare_segment(stream_id, postbus_data.layout_segment(layout) + 1, new_base, partition_count);
    end if;
end
$$;

create or replace function postbus_data.seal_segments(stream_id integer, sequence regclass)
returns integer
language plpgsql
volatile
as $$
/*
Note that segments before the register's were rolled, and seal those that no publisher can write to any more.

A publisher that still writes to a rolled segment took its horizon lock before it read the register, so the lock's key is at most
last_value after the roll. When no such lock is left, all messages of the segment are committed and there will be no more.
*/
declare
    current_number integer := postbus_data.layout_segment(pg_sequence_last_value(to_regclass('postbus_data.layout_' || stream_id)));
    last_value bigint := pg_sequence_last_value(sequence);
    oldest bigint;
    segment postbus_data.segment;
    last_message record;
    step_count integer := 0;
begin
    update postbus_data.segment as s
    set rolled_at_seq = last_value
    where s.stream_id = seal_segments.stream_id
        and s.number < current_number
        and s.rolled_at_seq is null;
    if found then
        -- The call that moved the register may have failed after it.
        perform postbus_data.create_publish_functions(stream_id);
        perform postbus_data.create_receive_function(stream_id);
    end if;

    last_value := pg_sequence_last_value(sequence);
    select min(l.held_at) into oldest from postbus_data.publisher_locks(stream_id, last_value) as l;
    for segment in
        select s.*
        from postbus_data.segment as s
        where s.stream_id = seal_segments.stream_id
            and s.sealed_at is null
            and s.rolled_at_seq < coalesce(oldest, s.rolled_at_seq + 1)
        order by s.number
    loop
        execute format(
            'select max(m.seq) as seq, max(m.published_at) as published_at
            from postbus_data.segment_partitions(%s, %s, %s) as p (n)
            cross join lateral (
                select l.seq, l.published_at from %s as l where l.partition = p.n order by l.seq desc limit 1
            ) as m',
            segment.stream_id,
            segment.partition_base,
            segment.partition_count,
            postbus_data.log_table(stream_id, segment.number)
        ) into last_message;
        update postbus_data.segment as s
        set sealed_at = clock_timestamp(),
            last_seq = coalesce(last_message.seq, s.after_seq),
            last_published_at = coalesce(last_message.published_at, s.prepared_at)
        where s.stream_id = seal_segments.stream_id
            and s.number = segment.number;
        step_count := step_count + 1;
    end loop;
    return step_count;
end
$$;

create or replace function postbus_data.seq_before(stream_id integer, at timestamptz)
returns bigint
language plpgsql
volatile
as $$
/*
A seq such that every message up to it was published before a time, close to the highest such seq.

Times grow with seqs except for the moment between drawing a seq and reading the clock; a caller that must not miss a message
asks for a second earlier and compares times itself. Each of up to eight partitions of a level gives a bound; the highest is used, because
a partition with few messages gives a low one.
*/
declare
    segment postbus_data.segment;
    bound bigint;
    partition integer;
begin
    select s.*
    into segment
    from postbus_data.segment as s
    where s.stream_id = seq_before.stream_id
        and (s.sealed_at is null or s.last_published_at >= at)
    order by s.number
    limit 1;

    bound := segment.after_seq;
    for partition in select p from postbus_data.segment_partitions(segment.stream_id, segment.partition_base, least(segment.partition_count, 8)) as p loop
        bound := greatest(bound, (postbus_data.bisect_time(segment, partition, at)).before_seq);
    end loop;
    return bound;
end
$$;

create or replace function postbus_data.seq_before_time(stream_id integer, at timestamptz)
returns bigint
language plpgsql
volatile
set enable_seqscan = off
set enable_bitmapscan = off
as $$
/*
The seq after which a reader begins who wants what was published at or after a time: the last message before the first of that
time.

Never too late. While a publisher is open, its messages may lie further back with a time that counts, so it is up to a second too
early then. Of messages published at the same moment, an earlier one may have the higher seq and come too.
*/
declare
    -- Read first: what lies below it is visible afterwards.
    horizon bigint := postbus_data.horizon_of(stream_id);
    early_seq bigint := postbus_data.seq_before(stream_id, at - interval '1 second');
    last_seq bigint := postbus_data.previous_seq(stream_id, 9223372036854775807);
    segment postbus_data.segment;
    candidate bigint;
    first_seq bigint;
begin
    for segment in
        select s.*
        from postbus_data.segment as s
        where s.stream_id = seq_before_time.stream_id
            and (s.last_seq > early_seq or s.sealed_at is null)
        order by s.number
    loop
        exit when first_seq <= segment.after_seq;
        begin
            execute format(
                'select min(m.seq)
                from postbus_data.segment_partitions(%s, %s, %s) as p (n)
                cross join lateral (
                    select l.seq
                    from %s as l
                    where l.partition = p.n and l.seq > $1 and l.published_at >= $2
                    order by l.seq
                    limit 1
                ) as m',
                segment.stream_id,
                segment.partition_base,
                segment.partition_count,
                postbus_data.log_table(stream_id, segment.number)
            ) into candidate using early_seq, at;
        exception when undefined_table then
            candidate := null; -- Purged and dropped meanwhile.
        end;
        first_seq := least(first_seq, candidate);
    end loop;
    if first_seq is not null then
        last_seq := coalesce(postbus_data.previous_seq(stream_id, first_seq - 1), 0);
    end if;
    return greatest(early_seq, least(last_seq, horizon));
end
$$;

create or replace function postbus_data.seq_since(stream_id integer, at timestamptz)
returns bigint
language plpgsql
volatile
as $$
/*
A seq such that every message from it on was published at or after a time; null when none is known. As exact as seq_before.

Any message of that time gives such a bound, in any partition; the lowest of up to eight partitions of a segment, of each level, is used.
*/
declare
    segment postbus_data.segment;
    bound bigint;
    partition integer;
begin
    for segment in
        select s.*
        from postbus_data.segment as s
        where s.stream_id = seq_since.stream_id
            and (s.sealed_at is null or s.last_published_at >= at)
        order by s.number
    loop
        for partition in select p from postbus_data.segment_partitions(segment.stream_id, segment.partition_base, least(segment.partition_count, 8)) as p loop
            bound := least(bound, (postbus_data.bisect_time(segment, partition, at)).since_seq);
        end loop;
        exit when bound is not null;
    end loop;
    return bound;
end
$$;

create or replace function postbus_data.set_layout(stream_id integer, segment integer, partition_base integer, partition_count integer)
returns void
language plpgsql
as $$
/*
Point publishers at a segment and its partitions, at once and for every snapshot. A stream that has levels keeps them.

The register is one number, see pack_layout. Its caller holds the stream's maintenance mutex, or has just created the stream.
*/
declare
    register regclass := to_regclass('postbus_data.layout_' || stream_id);
begin
    perform setval(
        register,
        postbus_data.pack_layout(
            segment, partition_base, partition_count, coalesce(postbus_data.has_levels(pg_sequence_last_value(register)), false)
        )
    );
end
$$;

create or replace function postbus_data.streams_due(only_id integer)
returns setof integer
language sql
volatile
as $$
/*
The streams that need maintenance, or only the given one if it does. Takes no lasting locks, however many streams there are:
sizes and ages come from the catalog and from the newest segment's row.
*/
    select s.id
    from postbus_data.stream as s
    cross join lateral (
        select
            max(g.number) as newest,
            count(*) filter (where g.sealed_at is null) as open_count,
            bool_or(g.last_seq < s.start_seq) as has_purged,
            max(g.prepared_at) as begun_at
        from postbus_data.segment as g
        where g.stream_id = s.id
    ) as g
    cross join lateral (
        -- Nothing while the heap is empty: an index has a page from the start.
        select case
            when pg_relation_size(log.name) > 0 then pg_total_relation_size(log.name)
            else 0
        end as bytes
        from (select to_regclass(postbus_data.log_table(s.id, g.newest)) as name) as log
    ) as log
    where (only_id is null or s.id = only_id)
        and (
            only_id is not null
            or g.open_count > 1
            or g.has_purged
            or s.roll_due
            or postbus_data.levels_are_stale(s.id)
            or s.one_message_per_key and g.newest > 1
            or exists (select from postbus_data.kept as k where k.stream_id = s.id)
            or exists (
                select
                from postbus_data.dedup as d
                where d.stream_id = s.id
                    and (d.begun_at is null or d.begun_at not between clock_timestamp() - s.dedup_window and clock_timestamp())
            )
            or pg_sequence_last_value(to_regclass('postbus_data.dedup_' || s.id))
                > coalesce((select max(d.number) from postbus_data.dedup as d where d.stream_id = s.id), 0)
            or exists (
                select
                from postbus_data.consumer as c
                where c.stream_id = s.id
                    and num_nonnulls(c.expire_after, c.keep_history) > 0
            )
            or log.bytes >= postbus_data.roll_bytes(s)
            or (log.bytes > 0 and g.begun_at not between clock_timestamp() - postbus_data.roll_age(s) and clock_timestamp() + interval '1 minute')
            or (log.bytes > 0 or s.is_full or g.newest > 1) and (num_nonnulls(s.retain_up_to, s.max_messages, s.max_storage) > 0 or s.until_acked)
        )
    -- In no order, so that streams that cannot proceed do not starve the others.
    order by random()
$$;

create or replace function postbus.maintain(stream text default null)
returns integer
language plpgsql
volatile
security definer
set lock_timeout = '500ms'
set search_path = pg_catalog, pg_temp
as $$
/*
Maintain the logs: begin new segments, seal old ones, apply retention, and drop segments whose messages are all gone.

Call it every few seconds to minutes, from any number of places: a stream that another call is maintaining is skipped. Nothing
breaks when it is late; only the newest segment grows. Without a stream's name it takes at most 100 streams that need it, so
that one call cannot fill the server's lock table; call it again while it returns more than 0. A stream that somebody has locked
is put off, with a warning.

Returns  how many steps were taken.
Raises   PB404 for an unknown stream; PB412 outside READ COMMITTED, where a segment could be sealed without messages committed
         since the snapshot, and they would never be read.
Touches  stream, segment, kept, dropped and the ids of dedup windows (insert, update, delete); creates and drops tables and
         functions; upkeep (update) and push_attempt (truncate), if no stream is given.
Locks    each stream's maintenance mutex, the tables that it drops, and the row of upkeep, until the transaction ends.
*/
declare
    only_id integer := case when stream is not null then postbus_data.stream_id(stream) end;
    due_id integer;
    step_count integer := 0;
begin
    perform postbus_data.check_isolation();
    for due_id in
        select d.id from postbus_data.streams_due(only_id) as d (id) limit 100
    loop
        begin
            step_count := step_count + postbus_data.maintain_log(due_id);
        exception when lock_not_available or out_of_memory or undefined_table then
            raise warning 'maintenance of stream % is put off: %', due_id, sqlerrm;
        end;
    end loop;
    if stream is null then
        perform postbus_data.empty_push_attempts();
        perform postbus_data.note_maintenance();
    end if;
    return step_count;
end
$$;

create or replace function postbus.alter_source(
    name text,
    tables text[] default null,
    operations text[] default null,
    columns jsonb default null,
    filters jsonb default null,
    key_template text default null,
    format text default null,
    url text default null,
    shown_url text default null
)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Change a source. A null leaves a setting as it is. Its reader begins anew with the settings within seconds, from where it was; changes that were
committed before that may come in either form.

url  another way to the same cluster. With another cluster the source stops, in the state diverged.

Raises   PB400 for an invalid setting, PB404 for an unknown source.
Touches  source (update).
*/
#variable_conflict use_variable
declare
    settings postbus_data.source;
    altered integer := postbus_data.find_source(name);
begin
    select s.* into settings from postbus_data.source as s where s.id = altered for update;
    settings.tables := coalesce(tables, settings.tables);
    settings.operations := coalesce(operations, settings.operations);
    settings.columns := coalesce(columns, settings.columns);
    settings.filters := coalesce(filters, settings.filters);
    settings.key_template := coalesce(key_template, settings.key_template);
    settings.format := coalesce(format, settings.format);
    perform postbus_data.check_source(
        settings.tables, settings.operations, settings.columns, settings.filters, settings.key_template, settings.format
    );
    update postbus_data.source as s
    set tables = settings.tables,
        operations = settings.operations,
        columns = settings.columns,
        filters = settings.filters,
        key_template = settings.key_template,
        format = settings.format,
        url = coalesce(alter_source.url, s.url),
        shown_url = case when alter_source.url is null then s.shown_url else alter_source.shown_url end,
        version = s.version + 1
    where s.id = altered;
end
$$;

create or replace function postbus.backfill_source(name text, tables text[] default null, action text default 'start')
returns integer
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Publish the existing rows of a source's tables, while changes go on: from the beginning (start), or pause, resume or cancel that.

tables  names, or schema.table; null are all that the source has found. A reader has to have found them first.

Returns  how many tables it concerns.
Raises   PB400 for another action, PB404 for an unknown source, or a table that it has not found.
Touches  source_table (update).
*/
declare
    concerned_id integer := postbus_data.find_source(name);
    missing text;
    concerned integer;
begin
    if (action in ('start', 'pause', 'resume', 'cancel')) is not true then
        raise exception using errcode = 'PB400', message = 'action is not one of start, pause, resume and cancel';
    end if;
    select u.wanted into missing
    from unnest(tables) as u (wanted)
    where not exists (
        select
        from postbus_data.source_table as t
        where t.source_id = concerned_id
            and u.wanted in (t.table_schema || '.' || t.table_name, t.table_name)
    );
    if missing is not null then
        raise exception using
            errcode = 'PB404',
            message = format('source "%s" has no table "%s"', name, missing),
            hint = 'list_sources shows those that it has found';
    end if;
    update postbus_data.source_table as t
    set backfill = case action when 'pause' then 'paused' when 'cancel' then 'none' else 'pending' end,
        after_key = case when action in ('start', 'cancel') then null else t.after_key end,
        row_count = case when action = 'start' then 0 else t.row_count end,
        started_at = case when action = 'start' then null else t.started_at end,
        done_at = case when action = 'start' then null else t.done_at end,
        problem = null
    where t.source_id = concerned_id
        and (
            tables is null
            or t.table_schema || '.' || t.table_name = any (tables)
            or t.table_name = any (tables)
        )
        and case action
            when 'start' then true
            when 'pause' then t.backfill in ('pending', 'running')
            when 'resume' then t.backfill in ('paused', 'refused')
            else t.backfill in ('pending', 'running', 'paused', 'refused')
        end;
    get diagnostics concerned = row_count;
    return concerned;
end
$$;

create or replace function postbus.create_source(
    name text,
    stream text,
    tables text[],
    url text default null,
    operations text[] default '{insert,update,delete,truncate}',
    columns jsonb default '{}',
    filters jsonb default '{}',
    key_template text default 'db.schema.table.pk',
    format text default 'sequin',
    backfill boolean default true,
    slot text default null,
    publication text default null,
    paused boolean default false,
    shown_url text default null
)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Create a Postgres source: changes of tables become messages of a stream. A process of the library reads it (postbus up, or postbus
source run), and makes its slot and its publication when it first does. Changes of before are not published, but as rows of the backfill.

url           the database with the tables; null is this one. It is stored, and only Postbus's owner can read it.
tables        patterns of schema.table, where * stands for any characters; without a schema, tables on the search path.
operations    of insert, update, delete and truncate.
columns       by schema.table, an array of the columns to publish. All without.
filters       by schema.table, a condition for the rows to publish, in SQL.
key_template  tokens joined by dots: db, schema, table, pk, action and source stand for what they name.
format        sequin, sequin2024 or debezium.
backfill      publish the existing rows too, with the action read.
slot          the name of its replication slot; null makes one up.
publication   one that exists, to be used as it is; null makes one.
shown_url     what people see of url.

Raises   PB400 for an invalid setting, PB404 for an unknown stream, PB409 when the source exists, or the stream does not hold JSON.
Touches  source, source_status (insert).
*/
#variable_conflict use_variable
declare
    target postbus_data.stream;
    made_up text := left(replace(lower(name), '-', '_'), 40) || '_' || substr(md5(gen_random_uuid()::text), 1, 6);
    created integer;
begin
    perform postbus_data.check_name('source', name);
    select s.* into target from postbus_data.stream as s where s.id = postbus_data.stream_id(stream);
    if target.data_type <> 'json' then
        raise exception using
            errcode = 'PB409',
            message = format('stream "%s" holds %s, and changes are JSON', stream, target.data_type),
            hint = 'create a stream with the type json for them';
    end if;
    perform postbus_data.check_source(tables, operations, columns, filters, key_template, format);
    if slot !~ '^[a-z0-9_]{1,63}$' then
        raise exception using
            errcode = 'PB400',
            message = format('slot name "%s" is not allowed', slot),
            hint = 'use 1 to 63 lower-case letters, digits or "_"';
    end if;
    insert into postbus_data.source as s (
        name, stream_id, url, shown_url, tables, operations, columns, filters, key_template, format, backfill, slot, publication,
        is_foreign_publication, paused
    )
    values (
        name, target.id, url, coalesce(shown_url, case when url is null then current_database() end), tables, operations, columns, filters,
        key_template, format, backfill, coalesce(slot, 'postbus_' || made_up), coalesce(publication, 'postbus_' || made_up),
        publication is not null, paused
    )
    on conflict do nothing
    returning s.id into created;
    if created is null then
        raise exception using
            errcode = 'PB409',
            message = format('source "%s" already exists', name),
            hint = 'change it with alter_source, or drop it first';
    end if;
    insert into postbus_data.source_status (source_id) values (created);
end
$$;

create or replace function postbus.drop_source(name text)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Forget a source. What it has published stays. Its slot and its publication stay too, and the slot keeps the source's log until somebody drops it:
the library and the command line do that first. list_sources says what they are called.

Raises   PB404 for an unknown source.
Touches  source, source_position, source_status, source_table (delete).
*/
declare
    dropped integer := postbus_data.find_source(name);
begin
    delete from postbus_data.source as s where s.id = dropped;
end
$$;

create or replace function postbus_data.begin_source(source_id integer, lsn pg_lsn, system_identifier text, timeline integer, shown_url text)
returns integer
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
/*
Record that a source has a new slot, from which all transactions that end after this place of its log will come.

shown_url  what people see of its URL, unless that is known.

Returns  the epoch of the slot; null when another reader was faster.
Touches  source (update), source_position (insert, delete).
Locks    the source.
*/
#variable_conflict use_variable
declare
    begun integer;
begin
    select coalesce(max(p.epoch), 0) + 1 into begun
    from postbus_data.source_position as p
    where p.source_id = begin_source.source_id;
    update postbus_data.source as s
    set epoch = begun,
        system_identifier = begin_source.system_identifier,
        timeline = begin_source.timeline,
        shown_url = coalesce(s.shown_url, begin_source.shown_url)
    where s.id = source_id
        and s.epoch = 0;
    if not found then
        return null;
    end if;
    insert into postbus_data.source_position (source_id, epoch, lsn) values (source_id, begun, lsn);
    delete from postbus_data.source_position as p where p.source_id = begin_source.source_id and p.epoch < begun;
    return begun;
end
$$;

create or replace function postbus_data.check_source(
    tables text[], operations text[], columns jsonb, filters jsonb, key_template text, format text
)
returns void
language plpgsql
immutable
as $$
/* Refuse settings of a source that cannot be used (PB400). */
declare
    problem text := case
        when coalesce(cardinality(tables), 0) = 0 then 'tables is empty: name at least one table'
        when array_position(tables, null) is not null or exists (select from unnest(tables) as t where t !~ '^([^.]+\.)?[^.]+$')
            then 'tables has something else than names and patterns such as "public.orders" or "shop.*"'
        when coalesce(cardinality(operations), 0) = 0 or not operations <@ array['insert', 'update', 'delete', 'truncate']
            then 'operations may name insert, update, delete and truncate, and has to name one'
        when jsonb_typeof(columns) is distinct from 'object'
            or exists (select from jsonb_each(columns) as c where jsonb_typeof(c.value) <> 'array' or c.value = '[]')
            then 'columns is not an object with a list of columns for each table'
        when jsonb_typeof(filters) is distinct from 'object' or exists (select from jsonb_each(filters) as f where jsonb_typeof(f.value) <> 'string')
            then 'filters is not an object with a condition for each table'
        when (key_template ~ '^[^.\x01-\x20\x7f*>%]+(\.[^.\x01-\x20\x7f*>%]+)*$') is not true
            then 'key_template is not tokens joined by dots, such as db.schema.table.pk'
        when (format in ('sequin', 'sequin2024', 'debezium')) is not true then 'format is not one of sequin, sequin2024 and debezium'
    end;
begin
    if problem is not null then
        raise exception using errcode = 'PB400', message = problem;
    end if;
end
$$;

create or replace function postbus_data.end_emptying(source_id integer)
returns void
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
/*
Record that a truncate of each table of a source is published. The reader calls it in the transaction of publish_source.

Touches  source (update).
*/
    update postbus_data.source as s set empties = false where s.id = end_emptying.source_id
$$;

create or replace function postbus_data.find_source(name text)
returns integer
language plpgsql
stable
as $$
/* The id of a source; raises PB404 when there is none. */
declare
    found_id integer := (select s.id from postbus_data.source as s where s.name = find_source.name);
begin
    if found_id is null then
        raise exception using
            errcode = 'PB404',
            message = format('source "%s" does not exist', name),
            hint = 'list_sources shows all';
    end if;
    return found_id;
end
$$;

create or replace function postbus_data.next_backfill(source_id integer)
returns setof postbus_data.source_table
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
/* The table of a source whose existing rows are to be published next: the one that has begun, else the first that waits. */
    select t.*
    from postbus_data.source_table as t
    where t.source_id = next_backfill.source_id
        and t.backfill in ('pending', 'running')
    order by t.backfill desc, t.started_at, t.table_schema, t.table_name
    limit 1
$$;

create or replace function postbus_data.note_backfill(
    source_id integer,
    schema_name text,
    table_name text,
    from_key text[],
    to_key text[],
    row_count bigint,
    is_done boolean,
    problem text default null
)
returns boolean
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
/*
Record that a page of a table's rows is published, which began behind from_key. The reader calls it in the transaction of publish_source.

problem  why the table cannot be read: the backfill stops there, until somebody resumes it.

Returns  false when the backfill was begun anew or canceled meanwhile: its progress stays as it is. A page that was under way when it was
         paused counts.
Touches  source_table (update).
*/
#variable_conflict use_column
begin
    update postbus_data.source_table as t
    set backfill = case when note_backfill.problem is not null then 'refused' when is_done then 'done' when t.backfill = 'paused' then 'paused' else 'running' end,
        after_key = case when note_backfill.problem is not null then t.after_key else coalesce(to_key, t.after_key) end,
        row_count = t.row_count + note_backfill.row_count,
        started_at = coalesce(t.started_at, clock_timestamp()),
        done_at = case when is_done then clock_timestamp() end,
        problem = note_backfill.problem
    where t.source_id = note_backfill.source_id
        and t.table_schema = note_backfill.schema_name
        and t.table_name = note_backfill.table_name
        and t.backfill in ('pending', 'running', 'paused')
        and t.after_key is not distinct from from_key;
    return found;
end
$$;

create or replace function postbus_data.note_source(
    source_id integer,
    holder uuid,
    state text,
    problem text,
    remedy text,
    lag_bytes bigint,
    lag_seconds double precision,
    wal_held_bytes bigint,
    changes bigint,
    transactions bigint,
    changes_per_second double precision
)
returns integer
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
/*
Keep a source for its reader, and store what it says about it.

changes, transactions  how many it has published since it last said so.

Returns  the version of the source's settings; null when the source is no longer the reader's: it is another's, paused, or gone.
Touches  source_status (update).
*/
#variable_conflict use_variable
declare
    current_version integer := (select s.version from postbus_data.source as s where s.id = source_id and not s.paused);
begin
    perform set_config('synchronous_commit', 'off', true);
    update postbus_data.source_status as u
    set held_at = clock_timestamp(),
        state = note_source.state,
        problem = note_source.problem,
        remedy = note_source.remedy,
        lag_bytes = note_source.lag_bytes,
        lag_seconds = note_source.lag_seconds,
        wal_held_bytes = note_source.wal_held_bytes,
        change_count = u.change_count + changes,
        transaction_count = u.transaction_count + transactions,
        changes_per_second = note_source.changes_per_second,
        updated_at = clock_timestamp()
    where u.source_id = note_source.source_id
        and u.holder = note_source.holder;
    return case when found then current_version end;
end
$$;

create or replace function postbus_data.note_source_tables(source_id integer, schemas text[], names text[], estimates bigint[], backfill boolean)
returns void
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
/*
Record the tables that a source has. Those that are new wait for their backfill, if there is one; those that are gone are forgotten.

Touches  source_table (insert, delete).
*/
    delete from postbus_data.source_table as t
    where t.source_id = note_source_tables.source_id
        and not exists (
            select from unnest(schemas, names) as u (table_schema, table_name) where (u.table_schema, u.table_name) = (t.table_schema, t.table_name)
        );
    insert into postbus_data.source_table (source_id, table_schema, table_name, backfill, estimated_count)
    select
        note_source_tables.source_id, u.table_schema, u.table_name, case when note_source_tables.backfill then 'pending' else 'none' end,
        u.estimate
    from unnest(schemas, names, estimates) as u (table_schema, table_name, estimate)
    on conflict do nothing
$$;

create or replace function postbus_data.note_timeline(source_id integer, timeline integer)
returns void
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
/*
Record that a source has failed over to another timeline, on which its slot goes on.

Touches  source (update).
*/
    update postbus_data.source as s set timeline = note_timeline.timeline where s.id = source_id
$$;

create or replace function postbus_data.publish_source(
    source_id integer,
    epoch integer,
    after_lsn pg_lsn,
    to_lsn pg_lsn,
    committed_at timestamptz,
    keys text[],
    data text[],
    attempt uuid default null,
    staged_count bigint default 0
)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
/*
Publish whole transactions of a source, and record in the same transaction how far that is. If the position is not where the reader
believes it to be, another one has published: nothing happens then.

keys, data             the messages, at most 10,000.
attempt, staged_count  instead of these: messages that were staged by spark_stage, and how many.

Raises   PB409 when the position is elsewhere, PB503 when staged messages are gone, and as publish_many.
Touches  source_position (insert, delete), spark_staging (delete), the current segment of the stream (insert).
Locks    the source, and the stream's horizon, shared, until the transaction ends.
*/
declare
    stream_name text;
    current_lsn pg_lsn;
    staged postbus_data.spark_staging;
    published bigint := 0;
begin
    select t.name into stream_name
    from postbus_data.source as s
    join postbus_data.stream as t on t.id = s.stream_id
    where s.id = publish_source.source_id
        and s.epoch = publish_source.epoch
    for no key update of s;
    -- A statement of its own, whose snapshot is younger than the lock.
    current_lsn := postbus_data.source_position_of(source_id, epoch);
    if stream_name is null or current_lsn is distinct from after_lsn then
        raise exception using
            errcode = 'PB409',
            message = format('the position of the source is %s and not %s: another reader has published', coalesce(current_lsn::text, 'gone'), after_lsn);
    end if;
    if to_lsn > after_lsn then
        insert into postbus_data.source_position (source_id, epoch, lsn, committed_at)
        select
            publish_source.source_id, publish_source.epoch, to_lsn,
            coalesce(
                publish_source.committed_at,
                (select p.committed_at from postbus_data.source_position as p where (p.source_id, p.epoch, p.lsn) = (publish_source.source_id, publish_source.epoch, after_lsn))
            );
        delete from postbus_data.source_position as p
        where p.source_id = publish_source.source_id
            and p.epoch = publish_source.epoch
            and p.lsn <= after_lsn;
    end if;
    if cardinality(keys) > 0 then
        perform postbus.publish_many(stream_name, keys, data);
    end if;
    if attempt is null then
        return;
    end if;
    for staged in
        select s.*
        from postbus_data.spark_staging as s
        where s.attempt = publish_source.attempt
        order by s.chunk
    loop
        perform postbus_data.spark_publish_chunk(stream_name, staged);
        published := published + staged.message_count;
    end loop;
    if published <> staged_count then
        raise exception using
            errcode = 'PB503',
            message = format('of %s staged changes %s are left', staged_count, published),
            hint = 'Postgres was restarted; the reader begins the transaction again';
    end if;
    delete from postbus_data.spark_staging as s where s.attempt = publish_source.attempt;
end
$$;

create or replace function postbus_data.release_source(name text, holder uuid)
returns void
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
/*
Let another reader have a source at once.

Touches  source_status (update).
*/
    update postbus_data.source_status as u
    set holder = null
    from postbus_data.source as s
    where s.name = release_source.name
        and u.source_id = s.id
        and u.holder = release_source.holder
$$;

create or replace function postbus_data.source_position_of(source_id integer, epoch integer)
returns pg_lsn
language sql
stable
set enable_seqscan = off
set enable_bitmapscan = off
set search_path = pg_catalog, pg_temp
as $$
/* How far a source is published; null before its slot exists. It looks at the right edge, so rows that were deleted cost nothing. */
    select p.lsn
    from postbus_data.source_position as p
    where p.source_id = source_position_of.source_id
        and p.epoch = source_position_of.epoch
    order by p.lsn desc
    limit 1
$$;

create or replace function postbus_data.take_source(name text, holder uuid, lasts interval)
returns postbus_data.source
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
/*
Take a source for one reader, or keep it. Others get it when it was not kept for as long as it lasts. What protects the stream is the
position (see publish_source): two readers would only be in each other's way.

Returns  its settings, with its URL; null when another reader has it, it is paused, or it is gone.
Touches  source_status (update).
Locks    the row of source_status, until the transaction ends; it does not wait for it.
*/
declare
    taken postbus_data.source;
begin
    -- A crash may forget who it was: then it is free a little earlier.
    perform set_config('synchronous_commit', 'off', true);
    select s.* into taken from postbus_data.source as s where s.name = take_source.name and not s.paused;
    update postbus_data.source_status as u
    set holder = take_source.holder,
        held_at = clock_timestamp()
    where u.source_id in (select o.source_id from postbus_data.source_status as o where o.source_id = taken.id for update skip locked)
        and (
            u.holder is null
            or u.holder = take_source.holder
            -- A clock that was set back must not keep it for long.
            or u.held_at not between clock_timestamp() - lasts and clock_timestamp() + lasts
        );
    if not found then
        return null;
    end if;
    return taken;
end
$$;

create or replace function postbus.list_sources(name text default null)
returns setof postbus.source_info
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
The sources, by name, without their URLs.

state  starting, backfilling, streaming, waiting_for_slot, unreachable, refused, gap, diverged, slot_lost; paused; not_running when no process
       has read it for ten seconds. problem and remedy say more.

Raises   nothing; an unknown name gives no row.
*/
    select
        s.name,
        (select t.name from postbus_data.stream as t where t.id = s.stream_id),
        s.shown_url,
        s.tables,
        s.operations,
        s.columns,
        s.filters,
        s.key_template,
        s.format,
        s.backfill,
        s.slot,
        s.publication,
        case
            when s.paused then 'paused'
            when u.state in ('gap', 'diverged', 'slot_lost') then u.state
            when (u.held_at > clock_timestamp() - interval '10 seconds') is not true then 'not_running'
            else u.state
        end,
        case when not s.paused then u.problem end,
        case when not s.paused then u.remedy end,
        u.lag_bytes,
        u.lag_seconds,
        u.wal_held_bytes,
        u.change_count,
        u.transaction_count,
        u.changes_per_second,
        p.lsn::text,
        p.committed_at,
        coalesce(
            (
                select jsonb_agg(
                    jsonb_build_object(
                        'schema', t.table_schema, 'name', t.table_name, 'backfill', t.backfill, 'row_count', t.row_count, 'estimated_count',
                        t.estimated_count, 'problem', t.problem
                    )
                    order by t.table_schema, t.table_name
                )
                from postbus_data.source_table as t
                where t.source_id = s.id
            ),
            '[]'
        ),
        s.created_at,
        u.updated_at
    from postbus_data.source as s
    left join postbus_data.source_status as u on u.source_id = s.id
    left join lateral (
        select p.lsn, p.committed_at
        from postbus_data.source_position as p
        where p.source_id = s.id
            and p.epoch = s.epoch
        order by p.lsn desc
        limit 1
    ) as p on true
    where list_sources.name is null
        or s.name = list_sources.name
    order by s.name
$$;

create or replace function postbus.pause_source(name text)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Stop reading a source until it is resumed. Nothing is missed, because its slot keeps the log: a source that is paused for long needs disk.

Raises   PB404 for an unknown source.
Touches  source (update).
*/
declare
    paused_id integer := postbus_data.find_source(name);
begin
    update postbus_data.source as s set paused = true where s.id = paused_id;
end
$$;

create or replace function postbus.restart_source(name text, backfill boolean default true, empty_first boolean default false)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Begin a source anew: with a new slot, from now on. For a source whose slot is gone or no longer fits (gap, diverged, slot_lost). What changed in
between is not published, but with backfill every row that is there now. Rows that were deleted in between are not reported.

empty_first  publish a truncate of each table before its rows, so that copies lose what was deleted in between. It needs backfill.

Raises   PB400 for empty_first without backfill, PB404 for an unknown source.
Touches  source (update), source_table (delete or update).
*/
declare
    restarted integer := postbus_data.find_source(name);
begin
    if empty_first and not restart_source.backfill then
        raise exception using errcode = 'PB400', message = 'empty_first needs backfill: copies would stay empty';
    end if;
    update postbus_data.source as s set empties = empty_first, epoch = 0, version = s.version + 1, paused = false where s.id = restarted;
    if restart_source.backfill then
        delete from postbus_data.source_table as t where t.source_id = restarted;
        update postbus_data.source as s set backfill = true where s.id = restarted;
    else
        update postbus_data.source_table as t
        set backfill = 'none'
        where t.source_id = restarted
            and t.backfill in ('pending', 'running', 'paused');
    end if;
end
$$;

create or replace function postbus.resume_source(name text)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Read a source on that was paused, or try again at once what it could not do.

Raises   PB404 for an unknown source.
Touches  source (update).
*/
declare
    resumed integer := postbus_data.find_source(name);
begin
    update postbus_data.source as s set paused = false, version = s.version + 1 where s.id = resumed;
end
$$;

create or replace function postbus_data.spark_begin_batch(
    stream text,
    writer text,
    batch_id bigint,
    query text,
    is_once boolean,
    message_count bigint
)
returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
/*
Record that a writer publishes a batch in this transaction.

Returns  false when the batch is published already.
Raises   PB404 for an unknown stream, PB409 when the writer belongs to another query.
Touches  spark_writer (insert or update).
Locks    the writer's row, so that two drivers cannot both publish a batch.
*/
declare
    target_id integer := postbus_data.stream_id(stream);
    known postbus_data.spark_writer;
begin
    insert into postbus_data.spark_writer as w (stream_id, writer, query, batch_id, is_once, message_count, total_count)
    values (target_id, writer, query, batch_id, is_once, message_count, message_count)
    on conflict on constraint spark_writer_pkey do update
    set batch_id = excluded.batch_id,
        message_count = excluded.message_count,
        total_count = w.total_count + excluded.message_count,
        published_at = clock_timestamp()
    where w.batch_id < excluded.batch_id
        and w.query is not distinct from excluded.query
    returning w.* into known;
    if known.writer is not null then
        return true;
    end if;

    select w.* into known
    from postbus_data.spark_writer as w
    where w.stream_id = target_id
        and w.writer = spark_begin_batch.writer;
    if known.query is distinct from query then
        raise exception using
            errcode = 'PB409',
            message = format('writer "%s" belongs to another query', writer),
            hint = 'a query with a new checkpoint counts from 0 again: give it a writerId of its own, or none';
    end if;
    return false;
end
$$;

create or replace function postbus_data.spark_check(system text)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
/*
Refuse to read on a server other than the one on which the read was planned: a standby may lack messages (PB503), and another
system has other messages (PB409).
*/
begin
    if pg_is_in_recovery() then
        raise exception using
            errcode = 'PB503',
            message = 'this server is a standby: it may lack messages',
            hint = 'use a URL that reaches the primary from every executor';
    end if;
    if system <> (select c.system_identifier::text from pg_control_system() as c) then
        raise exception using
            errcode = 'PB409',
            message = 'the URL reaches a different Postgres from this executor than from the driver',
            hint = 'use a URL that reaches the same server from both';
    end if;
end
$$;

create or replace function postbus_data.spark_commit(
    stream text,
    consumer text,
    seq bigint,
    caller postbus.caller default postbus.current_caller()
)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Record that a streaming query has processed a stream up to a seq, as the position of a consumer, which stats shows. A consumer
that does not exist is created if the caller owns Postbus. The position never moves back.

Raises   PB403, PB404, PB409 when workers receive from that consumer.
Touches  consumer (insert), position (insert, delete).
Locks    the mutex of each partition.
*/
declare
    reader postbus_data.consumer;
    partition_base integer;
    moved bigint;
    place integer;
begin
    perform postbus_data.permitted_stream(caller, stream, 'consume');
    if not exists (
        select from postbus_data.consumer as c where c.stream_name = stream and c.name = consumer
    ) then
        perform postbus_data.permitted_stream(caller, stream, 'manage');
        begin
            perform postbus.create_consumer(stream, consumer);
        exception when sqlstate 'PB409' then
            null; -- Another query was faster.
        end;
    end if;
    reader := postbus_data.find_consumer(stream, consumer);
    if exists (select from postbus_data.lease as l where l.consumer_id = reader.id) then
        raise exception using
            errcode = 'PB409',
            message = format('consumer "%s" of stream "%s" has messages in flight: workers receive from it', consumer, stream),
            hint = 'give the streaming query its own consumer';
    end if;
    loop
        for place in select p from postbus_data.segment_partitions(reader.stream_id, reader.partition_base, reader.partition_count) as p order by p loop
            perform pg_advisory_xact_lock(postbus_data.consumer_lock_class(reader.id), mod(place, 100000000));
            insert into postbus_data.position (consumer_id, epoch, partition, read_to_seq, horizon, pending_bound)
            select reader.id, reader.epoch, place, spark_commit.seq, spark_commit.seq, 0
            where not exists (
                select
                from postbus_data.position as p
                where p.consumer_id = reader.id
                    and p.epoch = reader.epoch
                    and p.partition = place
                    and p.read_to_seq >= spark_commit.seq
            )
            returning read_to_seq into moved;
            delete from postbus_data.position as p
            where p.consumer_id = reader.id
                and p.epoch = reader.epoch
                and p.partition = place
                and p.read_to_seq < moved;
        end loop;
        partition_base := reader.partition_base;
        reader := postbus_data.change_layout(reader);
        exit when reader.partition_base = partition_base;
    end loop;
end
$$;

create or replace function postbus_data.spark_discard(
    writer text,
    batch_id bigint,
    attempts uuid[],
    caller postbus.caller default postbus.current_caller()
)
returns void
language sql
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Remove what was staged for an abandoned batch: by attempt where the tasks are known, and by writer where it is known.

Raises   PB403, PB404.
*/
    delete from postbus_data.spark_staging as s
    where s.attempt = any (attempts)
        and starts_with(s.writer, split_part(spark_discard.writer, '/', 1) || '/')
        and postbus_data.permitted_stream(caller, split_part(spark_discard.writer, '/', 1), 'publish') is not null;
    delete from postbus_data.spark_staging as s
    where s.writer = spark_discard.writer
        and s.batch_id = spark_discard.batch_id
        and postbus_data.permitted_stream(caller, split_part(spark_discard.writer, '/', 1), 'publish') is not null;
$$;

create or replace function postbus_data.spark_end(
    stream text,
    after_seq bigint,
    up_to_seq bigint default null,
    max_messages bigint default null,
    max_bytes bigint default null,
    caller postbus.caller default postbus.current_caller()
)
returns bigint
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
The end of a streaming query's batch that begins after a seq: everything complete, or at most max_messages of it. The same range
always gives the same messages.

up_to_seq  no further than this.
max_bytes  about this size, by the average size of the stream's messages.

Returns  the last seq of the batch; after_seq when there is nothing to read.
Raises   PB404 for an unknown stream, PB412 outside READ COMMITTED, PB503 on a standby.
Locks    nothing; its commit waits for the disk when the batch is not empty (see spark_flush).
*/
declare
    found_id integer := postbus_data.permitted_stream(caller, stream, 'consume', 'read');
    last_seq bigint := least(postbus_data.horizon_of(found_id), up_to_seq);
    first_seq bigint;
    info postbus.stream_info;
begin
    if last_seq <= after_seq then
        return after_seq;
    end if;
    first_seq := postbus_data.next_seq(found_id, after_seq);
    if first_seq is null or first_seq > last_seq then
        return after_seq;
    end if;
    if max_bytes is not null then
        info := postbus.stream_info(stream, caller);
        max_messages := least(max_messages, greatest(1, max_bytes / greatest(1, info.bytes / greatest(1, info.message_estimate))));
    end if;
    last_seq := least(last_seq, first_seq - 1 + max_messages);
    perform postbus_data.spark_flush();
    return last_seq;
end
$$;

create or replace function postbus_data.spark_end_batch(
    stream text,
    writer text,
    batch_id bigint,
    attempts uuid[],
    published bigint,
    expected bigint
)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
/*
Remove what was staged for a batch that is published, now or before, and stale leftovers.

published, expected  how many messages were found (null when the batch was published before), and how many its tasks have staged.

Raises   PB503 when some are missing.
Touches  spark_staging (delete), spark_writer (delete).
*/
begin
    if published <> expected then
        raise exception using
            errcode = 'PB503',
            message = format('%s of %s staged messages are gone: Postgres crashed, or the batch took more than two days', expected - published, expected),
            hint = 'nothing was published; run the batch again';
    end if;
    delete from postbus_data.spark_staging as s
    where s.attempt = any (attempts)
        and starts_with(s.writer, stream || '/');
    -- Leftovers of attempts that do not count, and of dead drivers.
    delete from postbus_data.spark_staging as s
    where s.writer = stream || '/' || spark_end_batch.writer
        and s.batch_id <= spark_end_batch.batch_id;
    delete from postbus_data.spark_staging as s where s.staged_at < clock_timestamp() - interval '2 days';
    delete from postbus_data.spark_writer as w
    where w.is_once
        and w.published_at < clock_timestamp() - interval '7 days';
end
$$;

create or replace function postbus_data.spark_flush()
returns void
language plpgsql
volatile
as $$
/*
Make this transaction's commit wait until everything logged before it is on disk.

A seq drawn by a publisher that rolled back may not be on disk yet. If it left the database as an offset and Postgres crashed,
it would be drawn again, for a message that a reader at that offset never sees.
*/
begin
    if current_setting('synchronous_commit') = 'off' then
        perform set_config('synchronous_commit', 'on', true);
    end if;
    perform pg_logical_emit_message(true, 'postbus', '');
end
$$;

create or replace function postbus_data.spark_history(
    consumer_id integer,
    from_time timestamptz,
    to_time timestamptz,
    caller postbus.caller default postbus.current_caller()
)
returns setof postbus_data.history
language plpgsql
volatile
security definer
set enable_seqscan = off
set enable_bitmapscan = off
set search_path = pg_catalog, pg_temp
as $$
/*
The history of a consumer with from_time <= finished_at < to_time, in order of that time. No rows for a caller that may not
consume its stream.
*/
begin
    return query
    select h.*
    from postbus_data.history as h
    where h.consumer_id = spark_history.consumer_id
        and h.finished_at >= from_time
        and h.finished_at < to_time
        and exists (
            select
            from postbus_data.consumer as c
            where c.id = spark_history.consumer_id
                and postbus_data.has_right(caller, c.stream_id, 'consume')
        )
    order by h.finished_at;
end
$$;

create or replace function postbus_data.spark_lost(
    stream_id integer,
    after_seq bigint,
    caller postbus.caller default postbus.current_caller(),
    out purged boolean,
    out dropped boolean
)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Whether messages above a seq are gone: purged, even if they can still be read for a moment, or dropped with their segment. Nulls
for a caller that may not read the stream.
*/
declare
    first_kept bigint := (
        select s.start_seq
        from postbus_data.stream as s
        where s.id = stream_id
            and postbus_data.has_right(caller, s.id, 'consume', 'read')
    );
begin
    -- Above the last message of all that was dropped, there are seqs without a message: of duplicates, or rolled back.
    dropped := first_kept > after_seq + 1
        and after_seq < (select min(g.after_seq) from postbus_data.segment as g where g.stream_id = spark_lost.stream_id)
        and coalesce(
            (
                select bool_or(spark_lost.after_seq < d.last_seq and 0 < any (d.counts))
                from postbus_data.dropped as d
                where d.stream_id = spark_lost.stream_id
            ),
            true
        );
    purged := dropped or (
        first_kept > after_seq + 1 and coalesce(postbus_data.next_seq(stream_id, after_seq) < first_kept, false)
    );
end
$$;

create or replace function postbus_data.spark_place_rows(
    stream text,
    attempt uuid,
    chunk integer,
    out stream_id integer,
    out segment integer,
    out partition_base integer,
    out partition_count integer,
    out published_at bytea,
    out first_seq bigint,
    out seqs bigint[]
)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
/*
Make this transaction a publisher of the stream, draw the seqs of a staged row's messages, and say where to COPY them in the
same transaction. Nothing else may be written to a segment by COPY.

published_at  in the format of the protocol.
seqs          null when they are consecutive from first_seq on.

Raises   PB404, PB503 when the messages are gone, or the stream was dropped and another has its name; as begin_publish.
Locks    as lock_horizon.
*/
declare
    entry postbus_data.publish_target := postbus_data.begin_publish(stream, null);
    message_count integer;
begin
    select s.message_count
    into message_count
    from postbus_data.spark_staging as s
    where s.attempt = spark_place_rows.attempt
        and s.chunk = spark_place_rows.chunk
        and s.encoded_for = entry.stream_id;
    if message_count is null then
        raise exception using
            errcode = 'PB503',
            message = 'staged messages are gone, or belong to another stream of that name',
            hint = 'nothing was published; run the batch again';
    end if;
    select d.seqs, d.layout into seqs, entry.layout from postbus_data.draw_seqs(entry, message_count) as d;
    stream_id := entry.stream_id;
    segment := postbus_data.layout_segment(entry.layout);
    partition_base := postbus_data.layout_base(entry.layout);
    partition_count := postbus_data.layout_count(entry.layout);
    published_at := timestamptz_send(clock_timestamp());
    first_seq := seqs[1];
    if seqs[message_count] - first_seq = message_count - 1 then
        seqs := null;
    end if;
end
$$;

create or replace function postbus_data.spark_publish(
    stream text,
    writer text,
    batch_id bigint,
    query text,
    is_once boolean,
    attempts uuid[],
    message_counts bigint[],
    caller postbus.caller default postbus.current_caller()
)
returns bigint
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Publish what the tasks of a batch have staged as arrays, in the order of the tasks and of their rows, unless the writer has
published that batch before.

attempts, message_counts  the attempt of each task that counts, and how many messages it staged.
query                     the streaming query, when the writer is one.

Returns  how many messages were published; null when the batch was published before.
Raises   PB400 and PB413 for an invalid message, PB404, PB409 when the writer belongs to another query, PB503 when staged
         messages are gone.
Touches  spark_staging (delete), spark_writer (insert or update), the current segment of the stream (insert).
Locks    the writer's row, so that two drivers cannot both publish a batch; the stream's horizon, shared, until the transaction
         ends.
*/
declare
    staged postbus_data.spark_staging;
    published bigint;
    expected bigint := (select coalesce(sum(n), 0) from unnest(message_counts) as n);
begin
    perform postbus_data.permitted_stream(caller, stream, 'publish');
    if postbus_data.spark_begin_batch(stream, writer, batch_id, query, is_once, expected) then
        published := 0;
        for staged in
            select s.*
            from unnest(attempts) with ordinality as a (attempt, place)
            join postbus_data.spark_staging as s on s.attempt = a.attempt
            where s.writer = stream || '/' || spark_publish.writer
            order by a.place, s.chunk
        loop
            perform postbus_data.spark_publish_chunk(stream, staged);
            published := published + staged.message_count;
        end loop;
    end if;
    perform postbus_data.spark_end_batch(stream, writer, batch_id, attempts, published, expected);
    return published;
end
$$;

create or replace function postbus_data.spark_publish_chunk(stream text, staged postbus_data.spark_staging)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
/*
Publish the messages of one staged row, in their order. Messages with a future deliver_at are scheduled; those with the same
deliver_at keep their order.

Raises   as publish_many; PB409 for encoded rows, which a later release of the library has staged.
*/
declare
    entry postbus_data.publish_target := postbus_data.begin_publish(stream, null);
    seqs bigint[];
    part record;
begin
    if staged.encoded is not null then
        raise exception using
            errcode = 'PB409',
            message = 'the tasks run a later release of Postbus than the driver',
            hint = 'nothing was published; install the same release on both';
    end if;
    -- Release 0.1.0 staged them without hashes, and unchecked.
    if staged.deliver_at is null and staged.hashes is not null and not entry.one_message_per_key and entry.channel_tokens is null then
        select d.seqs, d.layout into seqs, entry.layout from postbus_data.draw_seqs(entry, staged.message_count) as d;
        perform postbus_data.insert_messages(
            entry, clock_timestamp(), null, seqs, staged.keys, staged.contents, staged.data, staged.headers, staged.bytes,
            staged.hashes, staged.priorities
        );
        return;
    end if;
    if staged.contents is not null then
        staged.data := staged.contents::text[];
    end if;
    if staged.deliver_at is null then
        perform postbus.publish_many(stream, staged.keys, staged.data, staged.headers, staged.bytes, priorities => staged.priorities);
        return;
    end if;
    for part in
        select
            m.due_at,
            array_agg(m.key order by m.place) as keys,
            array_agg(m.data order by m.place) as data,
            array_agg(m.headers order by m.place) as headers,
            array_agg(m.bytes order by m.place) as bytes,
            array_agg(m.priority order by m.place) as priorities
        from (
            select u.*, case when u.deliver_at > clock_timestamp() then u.deliver_at end as due_at
            from unnest(staged.keys, staged.data, staged.headers, staged.bytes, staged.deliver_at, staged.priorities)
                with ordinality as u (key, data, headers, bytes, deliver_at, priority, place)
        ) as m
        group by m.due_at
        order by m.due_at nulls first
    loop
        perform postbus.publish_many(
            stream,
            part.keys,
            case when staged.data is not null then part.data end,
            part.headers,
            case when staged.bytes is not null then part.bytes end,
            deliver_at => part.due_at,
            priorities => case when staged.priorities is not null then part.priorities end
        );
    end loop;
end
$$;

create or replace function postbus_data.spark_segments(
    stream_id integer,
    after_seq bigint,
    to_seq bigint,
    caller postbus.caller default postbus.current_caller()
)
returns table (number integer, first_partition integer, last_partition integer, above_seq bigint, last_seq bigint)
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
The segments that may hold messages with after_seq < seq <= to_seq, in order, with the bounds of their seqs: above_seq is below
all of them, and last_seq is null while the segment is written to: a row for each level in use, with its partitions. None for a caller that may not read the stream.
*/
    select g.number, lane + g.partition_base, lane + g.partition_base + g.partition_count - 1, g.after_seq, g.last_seq
    from postbus_data.segment as g
    cross join unnest(postbus_data.lanes(g.stream_id)) as lane
    where g.stream_id = spark_segments.stream_id
        and g.after_seq < to_seq
        and (g.last_seq > spark_segments.after_seq or g.sealed_at is null)
        and postbus_data.has_right(caller, g.stream_id, 'consume', 'read')
    order by g.number, lane
$$;

create or replace function postbus_data.spark_seq_since(
    stream text,
    at timestamptz,
    caller postbus.caller default postbus.current_caller()
)
returns bigint
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/* seq_since for a reader in Spark. Raises PB403, PB404. */
begin
    return postbus_data.seq_since(postbus_data.permitted_stream(caller, stream, 'consume', 'read'), at);
end
$$;

create or replace function postbus_data.spark_stage(
    stream text,
    attempt uuid,
    chunk integer,
    writer text,
    batch_id bigint,
    message_count integer,
    keys text[],
    data text[],
    headers jsonb[],
    bytes bytea[],
    deliver_at timestamptz[],
    priorities integer[] default null,
    caller postbus.caller default postbus.current_caller()
)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Check messages of a task, hash their keys, and store them where spark_publish finds them. Tasks do this in parallel; the driver
publishes alone.

Raises   PB400 and PB413 for an invalid message, PB404 for an unknown stream.
Touches  spark_staging (insert).
*/
declare
    entry postbus_data.publish_target;
    contents json[];
    hashes integer[];
begin
    if not starts_with(writer, stream || '/') then
        raise exception using errcode = 'PB400', message = format('writer "%s" does not belong to stream "%s"', writer, stream);
    end if;
    select s.id, s.data_type, s.max_message_bytes
    into entry.stream_id, entry.data_type, entry.max_message_bytes
    from postbus_data.stream as s
    where s.id = postbus_data.permitted_stream(caller, stream, 'publish');
    contents := postbus_data.check_messages(entry, message_count, keys, data, headers, bytes, null, priorities);
    perform postbus_data.check_priorities(priorities, true);
    -- As partition_of, which takes them modulo the number of partitions.
    hashes := array(
        select (get_byte(h.hash, 0) << 16) | (get_byte(h.hash, 1) << 8) | get_byte(h.hash, 2)
        from (select sha256(convert_to(u.key, 'UTF8'::name)) as hash from unnest(keys) with ordinality as u (key, place) order by u.place offset 0) as h
    );
    insert into postbus_data.spark_staging (
        attempt, chunk, writer, batch_id, message_count, keys, data, headers, bytes, deliver_at, contents, hashes, priorities
    )
    values (
        attempt, chunk, writer, batch_id, message_count, keys, case when contents is null then data end, headers, bytes, deliver_at,
        contents, hashes, priorities
    );
end
$$;

create or replace function postbus_data.spark_stage_rows(
    stream text,
    attempt uuid,
    chunk integer,
    writer text,
    batch_id bigint,
    message_count integer,
    is_bytes boolean,
    longest integer,
    encoded bytea,
    caller postbus.caller default postbus.current_caller()
)
returns boolean
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Store messages that a task has checked and encoded where the driver finds them; see spark_place_rows.

is_bytes  whether their data is bytes.
longest   the size of the longest data, in bytes.

Returns  false, and stores nothing, when the stream does not accept them in this form, or the caller may only publish through
         functions: spark_stage then says why, or accepts them.
Raises   PB404 for an unknown stream.
Touches  spark_staging (insert).
*/
begin
    insert into postbus_data.spark_staging (attempt, chunk, writer, batch_id, message_count, encoded_for, encoded)
    select attempt, chunk, writer, batch_id, message_count, s.id, encoded
    from postbus_data.stream as s
    where s.id = postbus_data.permitted_stream(caller, stream, 'publish')
        and not s.one_message_per_key
        and (s.data_type = 'bytes') = is_bytes
        and s.max_message_bytes >= longest
        and starts_with(writer, stream || '/')
        -- They are written to the log by COPY, which only its owner may do.
        and pg_has_role(caller.role, current_user, 'usage');
    return found;
end
$$;

create or replace function postbus_data.spark_staged(attempts uuid[])
returns table (attempt text, chunk integer, message_count integer, is_encoded boolean)
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
/* What these attempts have staged, in the order in which it is published. */
    select s.attempt::text, s.chunk, s.message_count, s.encoded is not null
    from unnest(attempts) with ordinality as a (attempt, place)
    join postbus_data.spark_staging as s on s.attempt = a.attempt
    order by a.place, s.chunk
$$;

create or replace function postbus_data.spark_start(
    stream text,
    "start" text,
    from_seq bigint,
    from_time timestamptz,
    caller postbus.caller default postbus.current_caller()
)
returns bigint
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
The seq after which a reader in Spark begins: before the oldest message kept ("earliest"), at messages published from now on
("latest"), at a seq, or at a time. It is durable, as in spark_end.

Raises   PB400 unless exactly one of them is given, PB404 for an unknown stream, PB412 outside READ COMMITTED, PB503 on a standby.
*/
declare
    found_id integer := postbus_data.permitted_stream(caller, stream, 'consume', 'read');
    found_start bigint := postbus_data.start_position(found_id, "start", from_seq, from_time);
begin
    perform postbus_data.spark_flush();
    return greatest(found_start, (select s.start_seq - 1 from postbus_data.stream as s where s.id = found_id));
end
$$;

create or replace function postbus_data.spark_state(
    stream text,
    caller postbus.caller default postbus.current_caller(),
    out stream_id integer,
    out data_type text,
    out start_seq bigint,
    out horizon bigint,
    out partition_base integer,
    out partition_count integer,
    out system text,
    out timeline text,
    out channel_tokens integer
)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
What a reader in Spark needs to know of a stream and of the database that holds it.

system, timeline  identify the history that seqs belong to: another history, after a failover or a restore, may have lost
                  messages and reused their seqs.

Raises   PB403, PB404, PB412 outside READ COMMITTED, PB503 on a standby.
*/
declare
    layout bigint;
begin
    stream_id := postbus_data.permitted_stream(caller, stream, 'consume', 'read');
    horizon := postbus_data.horizon_of(stream_id);
    layout := postbus_data.sequence_value('postbus_data.layout_' || stream_id::text);
    partition_base := postbus_data.layout_base(layout);
    partition_count := postbus_data.layout_count(layout);
    system := (select c.system_identifier from pg_control_system() as c);
    timeline := left(pg_walfile_name(pg_current_wal_lsn()), 8);
    select s.data_type, s.start_seq, s.channel_tokens
    into spark_state.data_type, spark_state.start_seq, spark_state.channel_tokens
    from postbus_data.stream as s
    where s.id = spark_state.stream_id;
end
$$;

create or replace function postbus_data.spark_written(
    stream text,
    writer text,
    caller postbus.caller default postbus.current_caller()
)
returns table (batch_id bigint, message_count bigint, total_count bigint)
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
The last batch that a writer has published to a stream, how many messages it had, and how many all batches had.

Raises   PB403, PB404.
*/
    select w.batch_id, w.message_count, w.total_count
    from postbus_data.spark_writer as w
    where w.stream_id = postbus_data.permitted_stream(caller, stream, 'publish', 'consume', 'read')
        and w.writer = spark_written.writer
$$;

create or replace function postbus.expose_sqs_queue(stream text, consumer text, name text default null)
returns text
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Let clients of SQS use a consumer as a queue: they receive its messages and delete, which is an ack; what they send is published to its stream.

name  1 to 80 letters, digits, "-" or "_"; null: <stream>-<consumer>. With ".fifo" at its end it is a FIFO queue: the consumer must keep the order of keys.

Returns  the name.
Raises   PB400 for an invalid name, PB404 for an unknown stream or consumer, PB409 for a group, a name that is taken, or a consumer that is a queue already.
Touches  sqs_queue (insert).
*/
#variable_conflict use_variable
declare
    reader postbus_data.consumer := postbus_data.find_consumer(stream, consumer);
    existing postbus_data.sqs_queue;
begin
    name := coalesce(name, stream || '-' || consumer);
    perform postbus_data.check_sqs_name(name);
    if reader.is_group then
        raise exception using
            errcode = 'PB409', message = format('%s is a group, which has no single acks', consumer), hint = 'create a consumer for the queue';
    end if;
    if name like '%.fifo' and reader.ordering = 'none' then
        raise exception using
            errcode = 'PB409', message = format('consumer "%s" keeps no order, so it cannot be a FIFO queue', consumer),
            hint = 'choose a name without ".fifo", or a consumer in order "key"';
    end if;
    select q.* into existing from postbus_data.sqs_queue as q where q.name = name or q.consumer_id = reader.id;
    if existing.name = name and existing.consumer_id = reader.id then
        return name;
    elsif existing.consumer_id = reader.id then
        raise exception using
            errcode = 'PB409', message = format('consumer "%s" is shown as queue "%s" already', consumer, existing.name),
            hint = format('hide that first: postbus sqs hide %s', existing.name);
    end if;
    insert into postbus_data.sqs_queue as q (name, stream_id, consumer_id, owns_stream, attributes)
    values (
        name, reader.stream_id, reader.id, false,
        jsonb_build_object('VisibilityTimeout', least(43200, extract(epoch from reader.ack_wait)::integer)::text)
    )
    on conflict do nothing;
    if not found then
        raise exception using errcode = 'PB409', message = format('queue "%s" already exists', name), hint = 'choose another name with --as';
    end if;
    return name;
end
$$;

create or replace function postbus.hide_sqs_queue(name text)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Take a queue from clients of SQS. Its stream and consumer stay as they are.

Raises   PB404 for an unknown queue.
Touches  sqs_queue (delete).
*/
begin
    delete from postbus_data.sqs_queue as q where q.id = (postbus_data.find_sqs_queue(hide_sqs_queue.name)).id;
end
$$;

create or replace function postbus_data.apply_sqs_attributes(name text)
returns void
language plpgsql
volatile
as $$
/*
Give the stream and the consumer of a queue the settings that its attributes mean. The stream that was there before its queue keeps its retention.

Raises   PB404 for an unknown queue, or when there is no queue for its dead letters.
Touches  stream, consumer (update).
*/
declare
    queue postbus_data.sqs_queue := postbus_data.find_sqs_queue(name);
    reader postbus_data.consumer := (select c from postbus_data.consumer as c where c.id = queue.consumer_id);
    redrive jsonb := nullif(queue.attributes ->> 'RedrivePolicy', '')::jsonb;
    target postbus_data.sqs_queue;
begin
    if queue.owns_stream then
        perform postbus.alter_stream(
            reader.stream_name, retain_up_to => make_interval(secs => coalesce(queue.attributes ->> 'MessageRetentionPeriod', '345600')::integer)
        );
    end if;
    perform postbus.alter_consumer(
        reader.stream_name, reader.name,
        ack_wait => greatest(interval '1 millisecond', make_interval(secs => coalesce(queue.attributes ->> 'VisibilityTimeout', '30')::integer))
    );
    if redrive is null then
        if queue.owns_stream then
            perform postbus.alter_consumer(reader.stream_name, reader.name, unset => array['max_deliver', 'dead_letters_to']);
        end if;
        return;
    end if;
    target := postbus_data.find_sqs_queue(split_part(redrive ->> 'deadLetterTargetArn', ':', 6));
    perform postbus.alter_consumer(
        reader.stream_name, reader.name, max_deliver => (redrive ->> 'maxReceiveCount')::integer,
        dead_letters_to => (select s.name from postbus_data.stream as s where s.id = target.stream_id)
    );
end
$$;

create or replace function postbus_data.as_sqs_dead_letter(consumer_id integer, message postbus.delivery, headers jsonb)
returns jsonb
language sql
volatile
as $$
/*
The headers of a dead letter for another queue of SQS, in which it keeps its id and time, and which says where it comes from; null if the consumer is not
the one of a queue that CreateQueue has made. What postbus/server/sqs makes of a seq, and of these headers, is the same.
*/
    select
        jsonb_build_object(
            'sqs-id', md5(q.id_base || ':' || message.seq)::uuid::text,
            'sqs-sent', floor(extract(epoch from message.published_at) * 1000)::bigint::text
        )
        || headers
        || jsonb_build_object('sqs-source', q.name)
    from postbus_data.sqs_queue as q
    where q.consumer_id = as_sqs_dead_letter.consumer_id
        and q.owns_stream
$$;

create or replace function postbus_data.change_sqs_queue(name text, attributes jsonb default '{}', tags jsonb default '{}', gone_tags text[] default '{}')
returns void
language plpgsql
volatile
as $$
/*
Set attributes and tags of a queue, as SetQueueAttributes, TagQueue and UntagQueue do. Those that are not named stay; '' removes an attribute.

Raises   PB404 for an unknown queue.
Touches  sqs_queue (update), and as apply_sqs_attributes does.
*/
declare
    changed integer := (postbus_data.find_sqs_queue(name)).id;
begin
    update postbus_data.sqs_queue as q
    set attributes = (
            select coalesce(jsonb_object_agg(a.key, a.value), '{}')
            from jsonb_each_text(q.attributes || change_sqs_queue.attributes) as a
            where a.value <> ''
        ),
        tags = (q.tags || change_sqs_queue.tags) - gone_tags,
        changed_at = case when change_sqs_queue.attributes = '{}' then q.changed_at else clock_timestamp() end
    where q.id = changed;
    if change_sqs_queue.attributes <> '{}' then
        perform postbus_data.apply_sqs_attributes(name);
    end if;
end
$$;

create or replace function postbus_data.check_sqs_name(name text)
returns void
language plpgsql
immutable
as $$
/* Refuse what is not a name of a queue of SQS (PB400). */
begin
    if (name ~ '^[A-Za-z0-9_-]+([.]fifo)?$' and length(name) <= 80) is not true then
        raise exception using
            errcode = 'PB400', message = format('queue name %s is not allowed', coalesce('"' || left(name, 90) || '"', 'null')),
            hint = 'use 1 to 80 letters, digits, "_" or "-"; the name of a FIFO queue ends in ".fifo"';
    end if;
end
$$;

create or replace function postbus_data.count_sqs_queue(name text)
returns table (visible_count bigint, in_flight_count bigint, delayed_count bigint)
language plpgsql
stable
as $$
/*
How many messages of a queue can be received, are in flight, or wait for their time. Exact up to 1,000, as count_backlog says; delayed ones up to 10,000.

A lease that has expired counts as visible, before any sweep; what waits after a failure counts as in flight, as its visibility was changed.

Raises  PB404 for an unknown queue.
*/
declare
    queue postbus_data.sqs_queue := postbus_data.find_sqs_queue(name);
    expired bigint;
    later bigint;
begin
    select coalesce(sum(cardinality(l.seqs) - (select count(*) from postbus_data.settled as s where s.token = l.token and s.seq = any (l.seqs))), 0)
    into expired
    from postbus_data.lease as l
    join postbus_data.consumer as c on c.id = l.consumer_id and c.epoch = l.epoch
    where l.consumer_id = queue.consumer_id
        and l.deadline <= clock_timestamp();
    select count(*)
    into later
    from (
        select
        from postbus_data.waiting as w
        where w.consumer_id + 0 = queue.consumer_id
            and w.due_at > clock_timestamp()
        limit 10000
    ) as w;
    return query
    select
        b.unread + b.waiting - later + expired, b.in_flight - expired + later,
        (select count(*) from (select from postbus_data.scheduled as s where s.stream_id = queue.stream_id limit 10000) as s)
    from postbus_data.count_backlog(queue.consumer_id) as b;
end
$$;

create or replace function postbus_data.create_sqs_queue(name text, streams text[], attributes jsonb, tags jsonb)
returns void
language plpgsql
volatile
as $$
/*
Create a queue as CreateQueue of SQS does, with a stream and a consumer of its own. The server has checked the attributes.

streams  names for the stream: the second is for when another queue has the first. A stream that is no queue's is never taken.

Raises   PB409 when the queue exists, or a stream of that name does.
Touches  sqs_queue (insert), and as create_stream and create_consumer do.
*/
#variable_conflict use_variable
declare
    is_fifo boolean := name like '%.fifo';
    stream text := streams[1];
    reader postbus_data.consumer;
begin
    perform postbus_data.check_sqs_name(name);
    if exists (
        select
        from postbus_data.stream as s
        join postbus_data.sqs_queue as q on q.stream_id = s.id
        where s.name = stream
            and q.owns_stream
            and q.name <> name
    ) then
        stream := streams[2];
    end if;
    perform postbus.create_stream(
        stream, data_type => 'text', partitions => 1, until_acked => true, dedup_window => case when is_fifo then interval '5 minutes' end
    );
    perform postbus.create_consumer(
        stream, stream, ordering => case when is_fifo then 'key' else 'none' end, max_ack_pending => 120000, max_waiting => 20000
    );
    reader := postbus_data.find_consumer(stream, stream);
    insert into postbus_data.sqs_queue as q (name, stream_id, consumer_id, owns_stream, attributes, tags)
    values (name, reader.stream_id, reader.id, true, attributes, tags);
    perform postbus_data.apply_sqs_attributes(name);
end
$$;

create or replace function postbus_data.drop_sqs_queue(name text)
returns void
language plpgsql
volatile
as $$
/*
Delete a queue, as DeleteQueue does: with its stream, if CreateQueue made that. Otherwise it is only hidden.

Raises   PB404 for an unknown queue.
Touches  sqs_queue (delete), and as drop_stream does.
Locks    as drop_stream.
*/
declare
    queue postbus_data.sqs_queue := postbus_data.find_sqs_queue(name);
begin
    delete from postbus_data.sqs_queue as q where q.id = queue.id;
    if queue.owns_stream then
        perform postbus.drop_stream((select s.name from postbus_data.stream as s where s.id = queue.stream_id));
    end if;
end
$$;

create or replace function postbus_data.find_sqs_queue(name text)
returns postbus_data.sqs_queue
language plpgsql
stable
as $$
/* The row of a queue for clients of SQS. Raises PB404 when there is none. */
declare
    queue postbus_data.sqs_queue;
begin
    select q.* into queue from postbus_data.sqs_queue as q where q.name = find_sqs_queue.name;
    if queue.id is null then
        raise exception using
            errcode = 'PB404', message = format('queue "%s" does not exist', left(name, 90)), hint = 'list them with: postbus sqs ls';
    end if;
    return queue;
end
$$;

create or replace function postbus_data.purge_sqs_queue(name text)
returns boolean
language plpgsql
volatile
as $$
/*
Remove all messages of a queue, as PurgeQueue does: also those in flight and those that are delayed, and the ids that it remembers to find duplicates.
If the stream was there before its queue, its messages stay, and only the consumer passes over them.

Returns  whether it did: not within 60 seconds of the last time.
Raises   PB404 for an unknown queue, PB412 outside READ COMMITTED.
Touches  sqs_queue (update), scheduled, dedup_<id>_<n> (delete), and as purge and seek do.
Locks    the queue's row.
*/
declare
    queue postbus_data.sqs_queue := postbus_data.find_sqs_queue(name);
    reader postbus_data.consumer := (select c from postbus_data.consumer as c where c.id = queue.consumer_id);
    ids integer;
begin
    update postbus_data.sqs_queue as q
    set purged_at = clock_timestamp()
    where q.id = queue.id
        and (q.purged_at < clock_timestamp() - interval '1 minute') is not false;
    if not found then
        return false;
    end if;
    if queue.owns_stream then
        delete from postbus_data.scheduled as s where s.stream_id = queue.stream_id;
        for ids in select d.number from postbus_data.dedup as d where d.stream_id = queue.stream_id loop
            execute format('delete from postbus_data.dedup_%s_%s', queue.stream_id, ids);
        end loop;
        perform postbus.purge(reader.stream_name, everything => true);
    end if;
    perform postbus.seek(reader.stream_name, reader.name, 'latest');
    return true;
end
$$;

create or replace function postbus.list_sqs_queues(name text default null)
returns setof postbus.sqs_queue_info
language sql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/* The queues for clients of SQS, or only that with a name, in order of their names. */
    select
        q.name, c.stream_name, c.name, q.owns_stream, q.attributes, q.tags, q.created_at, q.changed_at, q.purged_at, q.id, q.id_base::text, s.data_type,
        s.dedup_window is not null
    from postbus_data.sqs_queue as q
    join postbus_data.consumer as c on c.id = q.consumer_id
    join postbus_data.stream as s on s.id = q.stream_id
    where list_sqs_queues.name is null or q.name = list_sqs_queues.name
    order by q.name
$$;

create or replace function postbus.delete_key(stream text, key text)
returns bigint
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Delete a key of a stream that keeps one message per key. Consumers get a message that says so: with the header postbus-deleted and
without content (null in a json stream, otherwise empty).

Returns  the seq of that message; null when there is no such key.
Raises   PB404 for an unknown stream, PB409 when the stream does not keep one message per key; as publish.
Touches  the stream's state (update), the current segment of the stream (insert).
Locks    the key's state, and the horizon of the stream, shared, until the transaction ends.
*/
declare
    source postbus_data.stream;
    last_seq bigint;
begin
    select s.* into source from postbus_data.stream as s where s.id = postbus_data.stream_id(stream);
    if not source.one_message_per_key then
        raise exception using
            errcode = 'PB409',
            message = format('stream "%s" does not keep one message per key', stream);
    end if;
    execute format(
        'select t.seq from postbus_data.state_%s as t where t.key = $1 and t.seq > 0 and not t.is_deleted for update', source.id
    )
    into last_seq
    using key;
    if last_seq is null then
        return null;
    end if;
    return postbus.publish(
        stream,
        key,
        data => case source.data_type when 'json' then 'null' when 'text' then '' end,
        bytes => case when source.data_type = 'bytes' then ''::bytea end,
        headers => '{"postbus-deleted": "true"}'
    );
end
$$;

create or replace function postbus_data.compact_segments(stream_id integer, sequence regclass)
returns integer
language plpgsql
volatile
as $$
/*
In a stream with one message per key: rewrite a sealed segment without replaced versions, when at least half of it consists of
them.

A segment is examined again when the stream has grown by as many messages as it has keys, or by a thousand, so that the work per
message is bounded. One segment at a time.

Not done while a consumer has keep_unread, as the archive has: it is to see every version.

Its caller holds the stream's maintenance mutex. Messages that consumers hold are copied first. A reader in a long transaction
puts it off.
Returns  how many segments were examined.
Touches  segment (update), kept (insert); replaces the segment's table.
*/
declare
    last_value bigint := pg_sequence_last_value(sequence);
    old_log text;
    new_log text;
    chosen integer;
    message_count bigint;
    live_count bigint;
begin
    if to_regclass('postbus_data.state_' || stream_id) is null
        or exists (select from postbus_data.consumer as c where c.stream_id = compact_segments.stream_id and c.keep_unread)
    then
        return 0;
    end if;
    select g.number into chosen
    from postbus_data.segment as g
    join postbus_data.stream as s on s.id = g.stream_id
    where g.stream_id = compact_segments.stream_id
        and g.sealed_at is not null
        and g.last_seq >= s.start_seq
        and last_value - coalesce(g.compacted_at_seq, g.last_seq) >= greatest(
            1000, (select c.reltuples from pg_class as c where c.oid = to_regclass('postbus_data.state_' || compact_segments.stream_id))
        )
    order by g.number
    limit 1;
    if chosen is null then
        return 0;
    end if;
    old_log := postbus_data.log_table(stream_id, chosen);
    new_log := format('%s_new', old_log);
    execute format(
        'select count(*), count(*) filter (
            where exists (select from postbus_data.state_%s as t where t.key = l.key and t.seq = l.seq)
        ) from %s as l',
        stream_id, old_log
    ) into message_count, live_count;
    if live_count * 2 <= message_count and message_count > 0 then
        begin
            execute format('create table %s (like %s including all)', new_log, old_log);
            execute format(
                'insert into %s
                select l.*
                from %s as l
                where exists (select from postbus_data.state_%s as t where t.key = l.key and t.seq = l.seq)',
                new_log, old_log, stream_id
            );
            execute format('lock table %s in access exclusive mode nowait', old_log);
            perform postbus_data.copy_held_messages(stream_id, chosen);
            execute format('drop table %s', old_log);
            execute format('alter table %s rename to log_%s_%s', new_log, stream_id, chosen);
            execute format('alter index postbus_data.log_%1$s_%2$s_new_pkey rename to log_%1$s_%2$s_pkey', stream_id, chosen);
            perform postbus_data.apply_grants(stream_id);
        exception when lock_not_available then
            return 0;
        end;
    end if;
    update postbus_data.segment as g
    set compacted_at_seq = last_value
    where g.stream_id = compact_segments.stream_id
        and g.number = chosen;
    return 1;
end
$$;

create or replace function postbus_data.lock_keys(stream_id integer, keys text[])
returns void
language plpgsql
volatile
as $$
/*
Lock the states of keys, in their order, until the transaction ends. Keys without a state get one without a version.

Touches  the stream's state (insert).
*/
begin
    execute format(
        'insert into postbus_data.state_%s (key, seq, segment, partition)
        select distinct k.key collate "C", 0, 0, 0 from unnest($1) as k (key) order by 1
        on conflict do nothing',
        stream_id
    ) using keys;
    execute format(
        'select count(*)
        from (select from postbus_data.state_%s as t where t.key = any ($1) order by t.key for update) as locked',
        stream_id
    ) using keys;
end
$$;

create or replace function postbus_data.replace_versions(entry postbus_data.publish_target, batch postbus_data.publish_batch)
returns bigint[]
language plpgsql
volatile
as $$
/*
Make messages the current versions of their keys. Of several messages of a key the last counts; one whose data equals the
current version's does not, unless the stream has process_unmodified.

Its caller has locked the keys and drawn the seqs.
Returns  batch.answers, with the negated seq of the current version for messages that are not published.
Touches  the stream's state (update).
*/
declare
    answers bigint[];
begin
    execute format(
        'with given as (
            select m.*, coalesce(m.headers ? ''postbus-deleted'', false) as is_deleted, a.answer
            from (
                select
                    u.key, u.seq, u.headers, u.place,
                    sha256(case when $1.bytes is null then convert_to($1.data[u.place], ''UTF8'') else $1.bytes[u.place] end) as hash,
                    mod(
                        (get_byte(sha256(convert_to(u.key, ''UTF8'')), 0) << 16) | (get_byte(sha256(convert_to(u.key, ''UTF8'')), 1) << 8)
                        | get_byte(sha256(convert_to(u.key, ''UTF8'')), 2),
                        $4
                    ) + $3 + postbus_data.lane_of(coalesce($1.priorities[u.place], 4)) as partition
                from unnest($1.keys, $1.seqs, $1.headers) with ordinality as u (key, seq, headers, place)
            ) as m
            join unnest($1.answers) with ordinality as a (answer, place) using (place)
        ),
        last as (
            select distinct on (g.key) g.*
            from given as g
            where g.answer is null
            order by g.key, g.place desc
        ),
        replaced as (
            update postbus_data.state_%1$s as t
            set seq = l.seq,
                segment = $2,
                partition = l.partition,
                hash = l.hash,
                is_deleted = l.is_deleted
            from last as l
            where t.key = l.key
                and case
                    when l.is_deleted then t.seq > 0 and not t.is_deleted
                    else t.is_deleted or t.hash is distinct from l.hash
                        or (select s.process_unmodified from postbus_data.stream as s where s.id = %1$s)
                end
            returning t.key, t.seq
        )
        select array_agg(
            case
                when g.answer is not null then g.answer
                when r.seq = g.seq then null
                else -coalesce(r.seq, t.seq)
            end
            order by g.place
        )
        from given as g
        left join replaced as r on r.key = g.key
        left join postbus_data.state_%1$s as t on t.key = g.key',
        entry.stream_id
    )
    into answers
    using batch, postbus_data.layout_segment(entry.layout), postbus_data.layout_base(entry.layout), postbus_data.layout_count(entry.layout);
    return answers;
end
$$;

create or replace function postbus_data.superseded(stream_id integer, messages postbus.delivery[])
returns bigint[]
language plpgsql
volatile
as $$
/* The seqs of those messages that are not the current version of their key; none in a stream without one message per key. */
declare
    seqs bigint[];
begin
    if (select s.one_message_per_key from postbus_data.stream as s where s.id = stream_id) then
        execute format(
            'select array_agg(m.seq)
            from unnest($1) as m
            where not exists (select from postbus_data.state_%s as t where t.key = m.key and t.seq = m.seq)',
            stream_id
        ) into seqs using messages;
    end if;
    return coalesce(seqs, '{}');
end
$$;

create or replace function postbus.state(
    stream text,
    key text default null,
    key_pattern text default null,
    after_key text default '',
    max_messages integer default 1000,
    expected_type text default null,
    caller postbus.caller default postbus.current_caller()
)
returns setof postbus.message
language plpgsql
volatile
security definer
set enable_seqscan = off
set search_path = pg_catalog, pg_temp
as $$
/*
The current version of each key of a stream that keeps one message per key, in order of the keys: one key, the keys that match a
pattern, or all, in pages.

Raises   PB400 for an argument out of range or an invalid pattern, PB403 without the right to consume or read, PB404 for an
         unknown stream, PB409 when the stream does not keep one message per key or has another data type.
*/
#variable_conflict use_variable
declare
    source postbus_data.stream;
    key_regex text := postbus_data.pattern_regex(key_pattern);
    versions text;
begin
    select s.* into source from postbus_data.stream as s where s.id = postbus_data.permitted_stream(caller, stream, 'consume', 'read');
    if not source.one_message_per_key then
        raise exception using
            errcode = 'PB409',
            message = format('stream "%s" does not keep one message per key', stream),
            schema = stream,
            constraint = 'no_state',
            hint = 'such a stream is created with one_message_per_key; read any stream with postbus.read';
    end if;
    if (max_messages between 1 and 10000) is not true then
        raise exception using errcode = 'PB400', message = format('max_messages = %s is not between 1 and 10000', max_messages);
    end if;
    if expected_type <> source.data_type then
        raise exception using errcode = 'PB409', message = format('stream "%s" holds %s, not %s', stream, source.data_type, expected_type);
    end if;
    versions := format(
        'select t.key, t.seq, t.segment, t.partition
        from postbus_data.state_%s as t
        where t.seq > 0 and not t.is_deleted and t.key > $1 and ($2 is null or t.key = $2) and ($3 is null or t.key ~ $3)
        order by t.key
        limit $4',
        source.id
    );
    return query execute (
        select format(
            'with versions as materialized (%s) select m.* from (%s) as m order by m.key',
            versions,
            string_agg(
                format(
                    'select l.seq, l.partition, l.key, %s, l.headers, l.published_at, null::text as resume, postbus.priority_of(l.partition) as priority
                    from versions as v
                    join %s as l on l.partition = v.partition and l.seq = v.seq
                    where v.segment = %s',
                    case when source.data_type = 'bytes' then 'null::text as data, l.data as bytes' else 'l.data::text as data, null::bytea as bytes' end,
                    postbus_data.log_table(g.stream_id, g.number),
                    g.number
                ),
                ' union all '
            )
        )
        from postbus_data.segment as g
        where g.stream_id = source.id
    )
    using after_key, key, key_regex, max_messages;
end
$$;

create or replace function postbus.alter_stream(
    stream text,
    partitions integer default null,
    max_message_bytes integer default null,
    segment_bytes bigint default null,
    segment_age interval default null,
    retain_up_to interval default null,
    retain_at_least interval default null,
    max_messages bigint default null,
    max_storage bigint default null,
    until_acked boolean default null,
    when_full text default null,
    dedup_window interval default null,
    process_unmodified boolean default null,
    unset text[] default '{}'
)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Change settings of a stream; null leaves a setting unchanged. See create_stream for what each means. Limits of messages and
segments apply to messages published from now on, retention from the next maintenance.

partitions  takes effect at the next maintenance, for messages published from then on. Each consumer reads the earlier messages to
            their end and then continues with the new partitions, which have new numbers: messages of a key stay in order.
unset       the names of settings to clear: those whose default in create_stream is null.

Raises   PB400 for an invalid value, PB404 for an unknown stream, PB409 when its partitions cannot be renumbered any further, or it has channels.
Touches  stream (update), segment (insert, update); replaces the stream's functions, and creates or drops its tables of ids.
Locks    with partitions, the stream's maintenance mutex, until the transaction ends.
*/
declare
    altered integer := postbus_data.stream_id(stream);
    settings postbus_data.stream;
    unknown text;
begin
    select u into unknown
    from unnest(unset) as u
    where u not in (
        'retain_up_to', 'retain_at_least', 'max_messages', 'max_storage', 'dedup_window'
    )
    limit 1;
    if unknown is not null then
        raise exception using errcode = 'PB400', message = format('"%s" cannot be unset', unknown);
    end if;
    if partitions is not null then
        perform postbus_data.check_partitions(partitions);
        if (select s.channel_tokens is not null from postbus_data.stream as s where s.id = altered) then
            raise exception using
                errcode = 'PB409',
                message = format('stream "%s" has channels, so it keeps its number of partitions', stream),
                hint = 'create another stream with more of them, and move its publishers there';
        end if;
        perform postbus_data.repartition(altered, partitions);
    end if;
    update postbus_data.stream as s
    set
        max_message_bytes = coalesce(alter_stream.max_message_bytes, s.max_message_bytes),
        segment_bytes = coalesce(alter_stream.segment_bytes, s.segment_bytes),
        segment_age = coalesce(alter_stream.segment_age, s.segment_age),
        retain_up_to = case when 'retain_up_to' = any (unset) then null else coalesce(alter_stream.retain_up_to, s.retain_up_to) end,
        retain_at_least = case when 'retain_at_least' = any (unset) then null else coalesce(alter_stream.retain_at_least, s.retain_at_least) end,
        max_messages = case when 'max_messages' = any (unset) then null else coalesce(alter_stream.max_messages, s.max_messages) end,
        max_storage = case when 'max_storage' = any (unset) then null else coalesce(alter_stream.max_storage, s.max_storage) end,
        until_acked = coalesce(alter_stream.until_acked, s.until_acked),
        when_full = coalesce(alter_stream.when_full, s.when_full),
        dedup_window = case when 'dedup_window' = any (unset) then null else coalesce(alter_stream.dedup_window, s.dedup_window) end,
        process_unmodified = coalesce(alter_stream.process_unmodified, s.process_unmodified),
        -- Maintenance determines it again.
        is_full = false
    where s.id = altered
    returning s.* into settings;
    perform postbus_data.check_stream(settings);
    if settings.dedup_window is null then
        perform postbus_data.end_dedup(altered);
    else
        perform postbus_data.begin_dedup(altered);
    end if;
    perform postbus_data.create_publish_functions(altered);
    perform postbus_data.create_receive_function(altered);
    perform postbus_data.create_claim_function(g.stream_id, g.number, s.data_type)
    from postbus_data.segment as g
    join postbus_data.stream as s on s.id = g.stream_id
    where g.stream_id = altered;
end
$$;

create or replace function postbus.create_stream(
    stream text,
    data_type text default 'json',
    one_message_per_key boolean default false,
    channel_tokens integer default null,
    partitions integer default 8,
    max_message_bytes integer default 8388608,
    segment_bytes bigint default 268435456,
    segment_age interval default interval '1 day',
    retain_up_to interval default null,
    retain_at_least interval default null,
    max_messages bigint default null,
    max_storage bigint default null,
    until_acked boolean default false,
    when_full text default 'evict',
    dedup_window interval default null,
    process_unmodified boolean default false,
    exist_ok boolean default false
)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Create a stream. A setting whose default is null sets no limit, or is off.

data_type            What messages hold: json (any JSON value), text (str) or bytes.
one_message_per_key  A message replaces the one before of its key; consumers get the latest, state shows all.
channel_tokens       How many leading tokens of a key name its channel (tenant); none: no channels.
partitions           How many partitions its keys are spread over.
max_message_bytes    The largest data of a message.
segment_bytes        The size at which a segment of the log is full.
segment_age          The age at which a segment ends.
retain_up_to         Messages older than this are removed.
retain_at_least      Messages younger than this stay, whatever the limits.
max_messages         How many messages it may hold.
max_storage          How many bytes it may take on disk, kept to within a tenth.
until_acked          Messages are removed when all consumers have finished them.
when_full            At a limit: evict the oldest messages, or refuse new ones.
dedup_window         A message whose dedup_id was published this recently is not published again.
process_unmodified   With one message per key: publish a message even if its data has not changed.

exist_ok             A stream that exists is left as it is. Settings that are given must be its own.

A consumer too slow for the limits misses messages, and its stats say so, unless it has keep_unread. Space is freed by dropping whole
segments of the log.

Raises   PB400 for an invalid name or setting, PB409 when the stream exists (with exist_ok: when a setting that is given
         differs).
Touches  stream, segment (insert); creates the stream's sequences, functions and tables.
*/
declare
    settings postbus_data.stream;
    existing postbus_data.stream;
    id integer;
begin
    perform postbus_data.check_name('stream', stream);
    settings.data_type := data_type;
    settings.one_message_per_key := one_message_per_key;
    settings.channel_tokens := channel_tokens;
    settings.max_message_bytes := max_message_bytes;
    settings.segment_bytes := segment_bytes;
    settings.segment_age := segment_age;
    settings.retain_up_to := retain_up_to;
    settings.retain_at_least := retain_at_least;
    settings.max_messages := max_messages;
    settings.max_storage := max_storage;
    settings.until_acked := until_acked;
    settings.when_full := when_full;
    settings.dedup_window := dedup_window;
    settings.process_unmodified := process_unmodified;
    perform postbus_data.check_partitions(partitions);
    perform postbus_data.check_stream(settings);
    if settings.channel_tokens is not null and settings.one_message_per_key then
        raise exception using
            errcode = 'PB400',
            message = 'a stream with one message per key has no channels',
            hint = 'channel_tokens needs a stream that keeps every message';
    end if;

    insert into postbus_data.stream as s (
        name,
        data_type, one_message_per_key, channel_tokens, max_message_bytes, segment_bytes, segment_age, retain_up_to, retain_at_least,
        max_messages, max_storage, until_acked, when_full, dedup_window, process_unmodified
    )
    values (
        stream,
        settings.data_type, settings.one_message_per_key, settings.channel_tokens, settings.max_message_bytes, settings.segment_bytes,
        settings.segment_age, settings.retain_up_to, settings.retain_at_least, settings.max_messages, settings.max_storage,
        settings.until_acked, settings.when_full, settings.dedup_window, settings.process_unmodified
    )
    on conflict (name) do nothing
    returning s.id into id;
    if id is null and not exist_ok then
        raise exception using
            errcode = 'PB409',
            message = format('stream "%s" already exists', stream),
            constraint = 'already_exists',
            hint = 'to take it as it is: exist_ok => true';
    end if;
    if id is null then
        select s.* into existing from postbus_data.stream as s where s.name = stream;
        perform postbus_data.check_same_settings(
            format('stream "%s"', stream),
            to_jsonb(existing) || jsonb_build_object(
                'partitions', postbus_data.layout_count(pg_sequence_last_value(to_regclass('postbus_data.layout_' || existing.id)))
            ),
            to_jsonb(settings) || jsonb_build_object('partitions', partitions),
            postbus_data.stream_defaults()
        );
        return;
    end if;

    -- From 0, so that an unused stream's horizon (0) is below its first message (1). CACHE 1: a cached, lower number would
    -- land below the horizon.
    execute format('create sequence postbus_data.seq_%s minvalue 0 start 0 cache 1', id);
    execute format('create sequence postbus_data.layout_%s cache 1', id);
    execute format('create sequence postbus_data.urgent_%s minvalue 0 start 0 cache 1', id);
    perform setval(format('postbus_data.seq_%s', id), 0);
    perform setval(format('postbus_data.urgent_%s', id), 0);
    perform postbus_data.prepare_segment(id, 1, 0, partitions);
    perform postbus_data.set_layout(id, 1, 0, partitions);
    if dedup_window is not null then
        perform postbus_data.begin_dedup(id);
    end if;
    if one_message_per_key then
        execute format(
            'create table postbus_data.state_%s (
                key text collate "C" primary key,
                seq bigint not null,
                segment integer not null,
                partition integer not null,
                hash bytea,
                is_deleted boolean not null default false
            ) with (fillfactor = 70)',
            id
        );
    end if;
    perform postbus_data.create_publish_functions(id);
    perform postbus_data.create_receive_function(id);
    perform postbus_data.create_ack_function(id);
    perform postbus_data.apply_grants(id);
end
$$;

create or replace function postbus.describe_stream(stream text, caller postbus.caller default postbus.current_caller())
returns table (id integer, data_type text)
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
What a client needs to know of a stream to publish to it. Cheaper than stream_info.

Raises   PB404 for an unknown stream or one on which the caller has no right.
*/
    select s.id, s.data_type
    from postbus_data.stream as s
    where s.id = postbus_data.permitted_stream(caller, stream, 'publish', 'consume', 'read')
$$;

create or replace function postbus.drop_stream(stream text)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Drop a stream with all its messages and consumers.

Raises   PB404 for an unknown stream, PB409 when a source publishes to it.
Touches  stream, segment, the consumers and all their rows (delete); drops the stream's tables, sequences and functions.
Locks    the stream: it waits for transactions that have published to this stream, and for its maintenance.
*/
declare
    dropped integer := postbus_data.stream_id(stream);
    segment_number integer;
    feeding text := (select min(s.name) from postbus_data.source as s where s.stream_id = dropped);
begin
    if feeding is not null then
        raise exception using
            errcode = 'PB409',
            message = format('source "%s" publishes to stream "%s"', feeding, stream),
            hint = format('remove it first, with its slot: postbus source postgres rm %s', feeding);
    end if;
    -- In the order in which publishers lock: sequences first, tables last. Maintenance must not be running.
    perform from postbus_data.stream as s where s.id = dropped for update;
    perform pg_advisory_xact_lock(postbus_data.consumer_lock_class(0), dropped);
    execute format(
        'drop function if exists postbus_data.publish_%1$s, postbus_data.publish_many_%1$s, postbus_data.ack_and_receive_%1$s, postbus_data.ack_%1$s',
        dropped
    );
    execute format('drop sequence postbus_data.seq_%s', dropped);
    execute format('drop sequence postbus_data.layout_%s', dropped);
    execute format('drop sequence postbus_data.urgent_%s', dropped);
    delete from postbus_data.level as l where l.stream_id = dropped;
    execute format('drop table if exists postbus_data.state_%s', dropped);
    perform postbus_data.end_dedup(dropped);
    perform postbus.drop_consumer(stream, c.name) from postbus_data.consumer as c where c.stream_id = dropped;
    for segment_number in
        select s.number from postbus_data.segment as s where s.stream_id = dropped order by s.number
    loop
        perform postbus_data.drop_segment(dropped, segment_number);
    end loop;
    delete from postbus_data.stream as s where s.id = dropped;
end
$$;

create or replace function postbus_data.check_name(kind text, name text)
returns void
language plpgsql
immutable
as $$
/* Refuse a name that is not 1 to 63 of the characters A-Z a-z 0-9 _ - (PB400). Every name in Postbus is checked here. */
begin
    if name is null or name !~ '^[A-Za-z0-9_-]{1,63}$' then
        raise exception using
            errcode = 'PB400',
            message = format('%s name %s is not allowed', kind, coalesce('"' || left(name, 80) || '"', 'null')),
            hint = 'use 1 to 63 letters, digits, "_" or "-"';
    end if;
end
$$;

create or replace function postbus_data.check_partitions(partitions integer)
returns void
language plpgsql
immutable
as $$
/* Refuse a number of partitions that is out of its range (PB400). */
declare
    problem text;
begin
    problem := case
        when partitions is null then 'partitions cannot be null'
        when partitions not between 1 and 1024
            then format('partitions = %s is not between 1 and 1024', partitions)
    end;
    if problem is not null then
        raise exception using errcode = 'PB400', message = problem;
    end if;
end
$$;

create or replace function postbus_data.check_same_settings(what text, existing jsonb, wanted jsonb, defaults jsonb)
returns void
language plpgsql
immutable
as $$
/*
Refuse to take something that exists for what was to be created, if its settings differ. Settings that were to have their defaults
are not compared: nobody asked for them.

what    its kind and name, for the error.
Raises  PB409, with the settings that differ.
*/
declare
    differences text;
begin
    select string_agg(format('%s is %s, not %s', d.key, coalesce(existing ->> d.key, 'none'), coalesce(wanted ->> d.key, 'none')), '; ' order by d.key)
    into differences
    from jsonb_each(defaults) as d
    where wanted -> d.key <> d.value
        and wanted -> d.key <> existing -> d.key;
    if differences is not null then
        raise exception using
            errcode = 'PB409',
            message = format('%s exists with other settings: %s', what, differences),
            hint = 'alter it, or leave these settings out';
    end if;
end
$$;

create or replace function postbus_data.check_stream(settings postbus_data.stream)
returns void
language plpgsql
immutable
as $$
/* Refuse settings of a stream that are out of their range (PB400). Its partitions are not among its columns: see check_partitions. */
declare
    problem text;
begin
    problem := case
        when settings.data_type is null then 'data_type cannot be null'
        when settings.data_type not in ('json', 'text', 'bytes')
            then format('data_type = %L is not one of json, text, bytes', settings.data_type)
        when settings.one_message_per_key is null then 'one_message_per_key cannot be null'
        when settings.channel_tokens not between 1 and 8
            then format('channel_tokens = %s is not between 1 and 8', settings.channel_tokens)
        when settings.max_message_bytes is null then 'max_message_bytes cannot be null'
        when settings.max_message_bytes not between 1 and 268435456
            then format('max_message_bytes = %s is not between 1 and 268435456 (256 MiB)', settings.max_message_bytes)
        when settings.segment_bytes is null then 'segment_bytes cannot be null'
        when settings.segment_bytes not between 65536 and 1099511627776
            then format('segment_bytes = %s is not between 65536 (64 KiB) and 1099511627776 (1 TiB)', settings.segment_bytes)
        when settings.segment_age is null then 'segment_age cannot be null'
        when settings.segment_age not between interval '1 second' and interval '3650 days'
            then format('segment_age = %s is not between 1 second and 3650 days', settings.segment_age)
        when settings.retain_up_to not between interval '1 second' and interval '36500 days'
            then format('retain_up_to = %s is not between 1 second and 36500 days', settings.retain_up_to)
        when settings.retain_at_least not between interval '0' and interval '36500 days'
            then format('retain_at_least = %s is not between 0 and 36500 days', settings.retain_at_least)
        when settings.max_messages < 1
            then format('max_messages = %s is not at least 1', settings.max_messages)
        when settings.max_storage < 1048576
            then format('max_storage = %s is not at least 1048576 (1 MiB)', settings.max_storage)
        when settings.until_acked is null then 'until_acked cannot be null'
        when settings.when_full is null then 'when_full cannot be null'
        when settings.when_full not in ('evict', 'refuse')
            then format('when_full = %L is not one of evict, refuse', settings.when_full)
        when settings.dedup_window not between interval '1 second' and interval '30 days'
            then format('dedup_window = %s is not between 1 second and 30 days', settings.dedup_window)
        when settings.process_unmodified is null then 'process_unmodified cannot be null'
        when settings.retain_at_least > settings.retain_up_to
            then format('retain_at_least = %s is longer than retain_up_to = %s', settings.retain_at_least, settings.retain_up_to)
    end;
    if problem is not null then
        raise exception using errcode = 'PB400', message = problem;
    end if;
end
$$;

create or replace function postbus_data.count_held(stream_id integer, out message_count bigint, out bytes bigint, out segment_count integer)
language plpgsql
stable strict
as $$
/*
How many messages a stream holds, and what its log takes on disk.

message_count  those in the log, and those that retention has passed while a consumer still holds them. Exact up to 1,000. Beyond, what Postgres's statistics say, which are a second or so late; or an estimate from the first
               messages of each partition, while the statistics know of fewer than 1,000.
*/
#variable_conflict use_variable
declare
    known bigint;
    partitions integer[];
    start_seq bigint;
    purged_seq bigint;
    is_exact boolean;
    passed integer;
begin
    select s.start_seq, s.purged_seq into start_seq, purged_seq from postbus_data.stream as s where s.id = stream_id;
    select count(*), coalesce(sum(pg_stat_get_live_tuples(t.log)), 0), coalesce(sum(pg_total_relation_size(t.log)), 0)
    into segment_count, known, bytes
    from (
        select to_regclass(postbus_data.log_table(g.stream_id, g.number)) as log
        from postbus_data.segment as g
        where g.stream_id = stream_id
    ) as t;
    partitions := array(
        select p.n
        from (select distinct g.partition_base, g.partition_count from postbus_data.segment as g where g.stream_id = stream_id) as g
        cross join lateral postbus_data.segment_partitions(stream_id, g.partition_base, g.partition_count) as p (n)
        order by p.n
    );
    select c.message_count, c.is_exact
    into message_count, is_exact
    from postbus_data.count_messages(
        stream_id, partitions, array_fill(greatest(start_seq - 1, 0), array[cardinality(partitions)]), 'true', null
    ) as c;
    if not is_exact and known > 1000 then
        message_count := known;
    elsif start_seq > purged_seq then
        -- Of each consumer's, the first thousand are looked at.
        select count(distinct h.seq) into passed
        from postbus_data.consumer as c
        cross join lateral (
            (select w.seq from postbus_data.waiting as w where w.consumer_id = c.id limit 1000)
            union all
            (select p.seq from postbus_data.parked as p where p.consumer_id = c.id and p.epoch = c.epoch limit 1000)
            union all
            (select d.seq from postbus_data.due as d where d.consumer_id = c.id and d.epoch = c.epoch limit 1000)
            union all
            (
                select m.seq
                from postbus_data.lease as l
                cross join lateral unnest(l.seqs) as m (seq)
                where l.consumer_id = c.id
                    and l.epoch = c.epoch
                    and not exists (select from postbus_data.settled as s where s.token = l.token and s.seq = m.seq)
                limit 1000
            )
        ) as h
        where c.stream_id = count_held.stream_id
            and h.seq >= purged_seq
            and h.seq < start_seq;
        message_count := message_count + passed;
    end if;
end
$$;

create or replace function postbus_data.raise_unknown_stream(stream text)
returns void
language plpgsql
stable
as $$
/* Raise PB404 for a stream that does not exist, or that the caller must not know about. */
begin
    raise exception using
        errcode = 'PB404',
        message = format('stream "%s" does not exist', stream),
        schema = stream,
        constraint = 'unknown_stream',
        hint = format('create it with: select postbus.create_stream(%L)', stream);
end
$$;

create or replace function postbus_data.stream_defaults()
returns jsonb
language sql
immutable
as $$
/* The settings of a stream that was created without any. */
    select jsonb_build_object(
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
    )
$$;

create or replace function postbus_data.stream_id(stream text)
returns integer
language plpgsql
stable
as $$
/* The id of a stream. Raises PB404 for an unknown one. */
declare
    id integer;
begin
    select s.id into id from postbus_data.stream as s where s.name = stream_id.stream;
    if id is null then
        perform postbus_data.raise_unknown_stream(stream);
    end if;
    return id;
end
$$;

create or replace function postbus.list_streams(
    after_name text default '',
    max_streams integer default 200,
    caller postbus.caller default postbus.current_caller()
)
returns setof postbus.stream_info
language sql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
A page of streams, in order of their names: at most max_streams after after_name, with the columns of stream_info. Only streams on
which the caller has a right.
*/
    select i.*
    from (
        select s.name
        from postbus_data.stream as s
        where s.name > after_name
            and postbus_data.has_right(caller, s.id, 'publish', 'consume', 'read')
        order by s.name
        limit max_streams
    ) as page
    cross join lateral postbus.stream_info(page.name) as i
    order by i.name
$$;

create or replace function postbus.overview(
    after_name text default '',
    max_streams integer default 500,
    sizes boolean default false,
    caller postbus.caller default postbus.current_caller()
)
returns table (
    name text,
    start_seq bigint,
    last_seq bigint,
    is_full boolean,
    until_acked boolean,
    consumer_count bigint,
    message_estimate bigint,
    bytes bigint,
    scheduled bigint,
    next_scheduled_at timestamptz
)
language sql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
A page of streams with their current figures, in order of their names, at most max_streams after after_name. For monitoring that
asks often: far cheaper than list_streams. Only streams on which the caller has a right.

sizes    also return message_estimate, bytes, scheduled and next_scheduled_at, which are null otherwise: it counts messages, and examines
         the files of each segment. See stream_info for what they mean.
*/
    select
        s.name, s.start_seq, pg_sequence_last_value(to_regclass('postbus_data.seq_' || s.id)), s.is_full, s.until_acked,
        (select count(*) from postbus_data.consumer as c where c.stream_id = s.id),
        held.message_count, held.bytes, later.scheduled, later.next_scheduled_at
    from (
        select s.*
        from postbus_data.stream as s
        where s.name > after_name
            and postbus_data.has_right(caller, s.id, 'publish', 'consume', 'read')
        order by s.name
        limit max_streams
    ) as s
    -- Without sizes nothing is examined: the function is strict, and the condition below is not one of the join.
    left join lateral postbus_data.count_held(case when sizes then s.id end) as held on true
    left join lateral (
        select count(*) as scheduled, min(m.deliver_at) as next_scheduled_at
        from (
            select m.deliver_at
            from postbus_data.scheduled as m
            where sizes
                and m.stream_id = s.id
                and m.schedule_id is null
            order by m.deliver_at
            limit 10000
        ) as m
        having sizes
    ) as later on true
    order by s.name
$$;

create or replace function postbus.publish_counts(
    stream text,
    span interval default interval '1 hour',
    buckets integer default 60,
    caller postbus.caller default postbus.current_caller()
)
returns bigint[]
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
About how many messages were published to a stream in the last hour, or in another span: for each of so many equal parts of it, the
oldest first. Counted by seqs, which have gaps. The cost does not depend on how many messages there are: some index probes for each part.

Raises   PB400 for a span or a number of parts out of range, PB404 for an unknown stream or one on which the caller has no right, PB412
         outside READ COMMITTED, PB503 on a standby.
*/
declare
    found_id integer := postbus_data.permitted_stream(caller, stream, 'publish', 'consume', 'read');
    begun_at timestamptz := clock_timestamp() - span;
    end_seq bigint := postbus_data.horizon_of(found_id) + 1;
    bounds bigint[] := '{}';
begin
    if (buckets between 1 and 500) is not true or (span > interval '0' and span <= interval '366 days') is not true then
        raise exception using
            errcode = 'PB400',
            message = format('buckets = %s or span = %s is not allowed', coalesce(buckets::text, 'null'), coalesce(span::text, 'null')),
            hint = 'buckets is between 1 and 500, and span is up to 366 days';
    end if;
    for place in 0 .. buckets - 1 loop
        bounds := bounds || coalesce(postbus_data.seq_since(found_id, begun_at + span / buckets * place), end_seq);
    end loop;
    bounds := bounds || end_seq;
    return (
        select array_agg(greatest(0, bounds[place + 1] - bounds[place]) order by place)
        from generate_series(1, buckets) as place
    );
end
$$;

create or replace function postbus.publish_rate(
    stream text,
    span interval default interval '1 minute',
    caller postbus.caller default postbus.current_caller()
)
returns double precision
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
About how many messages per second were published to a stream in the last minute, or in another span. Counted by seqs, which
have gaps.

Raises   PB404 for an unknown stream or one on which the caller has no right, PB412 outside READ COMMITTED, PB503 on a standby.
*/
declare
    found_id integer := postbus_data.permitted_stream(caller, stream, 'publish', 'consume', 'read');
    last_seq bigint := postbus_data.horizon_of(found_id);
    since_seq bigint := postbus_data.seq_since(found_id, clock_timestamp() - span);
begin
    return coalesce(greatest(0, last_seq - since_seq + 1), 0) / greatest(0.001, extract(epoch from span));
end
$$;

create or replace function postbus.stream_info(stream text, caller postbus.caller default postbus.current_caller())
returns postbus.stream_info
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
A stream's settings and size.

start_seq         messages below this seq are gone.
last_seq          the highest seq given out, perhaps to a message that is not committed or never will be.
message_estimate  how many messages it holds: exact up to 1,000, beyond by Postgres's own statistics, a second or so late.
bytes             what the log takes on disk.
scheduled         how many messages wait for their time, which is not in the log; 10,000 means that many or more. next_scheduled_at is when
                  the next of them is due.

Raises   PB404 for an unknown stream or one on which the caller has no right.
*/
declare
    found_id integer := postbus_data.permitted_stream(caller, stream, 'publish', 'consume', 'read');
    settings postbus_data.stream;
    info postbus.stream_info;
begin
    settings := (select s from postbus_data.stream as s where s.id = found_id);
    info.name := settings.name;
    info.id := settings.id;
    info.is_full := settings.is_full;
    info.start_seq := settings.start_seq;
    info.created_at := settings.created_at;
    info.last_seq := pg_sequence_last_value(to_regclass('postbus_data.seq_' || found_id));
    info.partitions := postbus_data.layout_count(pg_sequence_last_value(to_regclass('postbus_data.layout_' || found_id)));
    info.data_type := settings.data_type;
    info.one_message_per_key := settings.one_message_per_key;
    info.channel_tokens := settings.channel_tokens;
    info.max_message_bytes := settings.max_message_bytes;
    info.segment_bytes := settings.segment_bytes;
    info.segment_age := settings.segment_age;
    info.retain_up_to := settings.retain_up_to;
    info.retain_at_least := settings.retain_at_least;
    info.max_messages := settings.max_messages;
    info.max_storage := settings.max_storage;
    info.until_acked := settings.until_acked;
    info.when_full := settings.when_full;
    info.dedup_window := settings.dedup_window;
    info.process_unmodified := settings.process_unmodified;

    select h.segment_count, h.message_count, h.bytes
    into info.segment_count, info.message_estimate, info.bytes
    from postbus_data.count_held(found_id) as h;
    select count(*), min(m.deliver_at)
    into info.scheduled, info.next_scheduled_at
    from (
        select m.deliver_at
        from postbus_data.scheduled as m
        where m.stream_id = found_id
            and m.schedule_id is null
        order by m.deliver_at
        limit 10000
    ) as m;
    return info;
end
$$;

create or replace function postbus.cancel_task(stream text, id bigint)
returns boolean
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
End a task in the background. What it has moved stays moved. It waits for the step at hand.

Returns  whether it was running.
Raises   PB404 for an unknown stream, or a task that is not one of the stream's.
Touches  task (update).
*/
#variable_conflict use_variable
declare
    only_id integer := postbus_data.stream_id(stream);
    was text;
begin
    select t.state
    into was
    from postbus_data.task as t
    join postbus_data.consumer as c on c.id = t.consumer_id
    where t.id = id
        and c.stream_id = only_id
    for update of t;
    if was is null then
        raise exception using
            errcode = 'PB404', message = format('task %s of stream "%s" does not exist', coalesce(id::text, 'null'), stream),
            hint = 'list them with: select * from postbus.list_tasks()';
    end if;
    update postbus_data.task as t set state = 'cancelled', ended_at = clock_timestamp() where t.id = id and t.state = 'running';
    return was = 'running';
end
$$;

create or replace function postbus_data.move_messages(reader postbus_data.consumer, to_stream text, max_messages integer)
returns integer
language plpgsql
volatile
as $$
/*
Publish the next messages of a consumer to another stream, and ack them, in one transaction: none is lost and none is there twice. They become new messages:
headers that say where a dead letter came from are left out.

to_stream  null: each goes to the stream whose dead letter it is.

Returns  how many were moved; null if there is nothing more to move.
Raises   PB404 for an unknown stream, or a message that is no dead letter.
Touches  as receive, publish and ack do.
Locks    as receive.
*/
declare
    message postbus.delivery;
    target text;
    moved text[] := '{}';
begin
    for message in select r.* from postbus.receive(reader.stream_name, reader.name, max_messages) as r loop
        target := coalesce(to_stream, message.headers ->> 'postbus-dead-stream');
        if target is null or target = reader.stream_name then
            raise exception using
                errcode = 'PB404', message = format('message %s is no dead letter of another stream', message.seq), hint = 'name the stream that messages go to';
        end if;
        perform postbus.publish(
            target, message.key, message.data,
            nullif(
                message.headers - array[
                    'postbus-dead-stream', 'postbus-dead-consumer', 'postbus-dead-seq', 'postbus-dead-attempts', 'postbus-dead-reason',
                    'sqs-id', 'sqs-sent', 'sqs-source'
                ],
                '{}'
            ),
            message.bytes, priority => message.priority
        );
        moved := moved || message.ack_id;
    end loop;
    if moved = '{}' then
        return case when (select b.unread + b.waiting from postbus_data.count_backlog(reader.id) as b) > 0 then 0 end;
    end if;
    perform postbus.ack(reader.stream_name, reader.name, moved);
    return cardinality(moved);
end
$$;

create or replace function postbus.list_tasks(stream text default null)
returns setof postbus.task_info
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
The tasks in the background, of one stream or of all, the newest first: those that run, and those that ended within a week.

done_count is how many messages were moved so far, of about total_estimate; null: that is not known.

Raises   PB404 for an unknown stream.
*/
#variable_conflict use_variable
declare
    only_id integer := case when stream is not null then postbus_data.stream_id(stream) end;
begin
    return query
    select
        t.id, c.stream_name, c.name, t.kind, t.state, t.done_count, t.total_estimate, t.rate, t.key_pattern, t.reason_like, t.to_stream,
        t.last_error, t.created_by, t.created_at, t.noted_at, t.ended_at
    from postbus_data.task as t
    join postbus_data.consumer as c on c.id = t.consumer_id
    where only_id is null
        or c.stream_id = only_id
    order by t.id desc
    limit 1000;
end
$$;

create or replace function postbus.run_tasks(max_messages integer default 1000)
returns integer
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Do one step of each task that runs in the background: move at most max_messages messages of it, and no more than its rate allows. Whoever
does the upkeep calls it again and again. A task is worked on by one caller at a time; others pass it over.

A step and its count are one transaction: when it is rolled back, nothing was moved. A task whose step fails ends, and says why. A task
that ended more than a week ago is removed.

Returns  how many messages were moved; 0 if nothing is to be done now.
Touches  task (update, delete); as redrive, discard, replay and move_messages.
Locks    the rows of the tasks until the transaction ends.
*/
#variable_conflict use_variable
declare
    task postbus_data.task;
    reader postbus_data.consumer;
    now_at timestamptz := clock_timestamp();
    page integer;
    moved integer;
    next_resume text;
    chosen bigint[];
    last_seq bigint;
    ended boolean;
    total integer := 0;
begin
    if (max_messages between 1 and 10000) is not true then
        raise exception using errcode = 'PB400', message = format('max_messages = %s is not between 1 and 10000', coalesce(max_messages::text, 'null'));
    end if;
    for task in
        select t.* from postbus_data.task as t where t.state = 'running' order by t.id for update skip locked
    loop
        page := max_messages;
        if task.rate is not null then
            -- What was not used for more than a second, or until one message was due, is lost: there are no bursts.
            task.paced_at := greatest(task.paced_at, now_at - make_interval(secs => greatest(1, 1 / task.rate)));
            page := least(page, floor(task.rate * extract(epoch from now_at - task.paced_at)));
            continue when page < 1;
        end if;
        select c.* into reader from postbus_data.consumer as c where c.id = task.consumer_id;
        begin
            ended := false;
            if task.kind = 'replay' then
                select r.replayed, r.next_resume
                into moved, next_resume
                from postbus.replay(
                    reader.stream_name, reader.name, from_seq => task.from_seq, to_seq => task.to_seq, from_time => task.from_time,
                    to_time => task.to_time, key_pattern => task.key_pattern, max_messages => page, resume => task.resume
                ) as r;
                ended := next_resume is null;
            elsif task.kind = 'move' then
                moved := postbus_data.move_messages(reader, task.to_stream, page);
                ended := moved is null;
                moved := coalesce(moved, 0);
            else
                -- By seq, so that none comes twice: what is redriven may die again.
                select array_agg(d.seq) filter (where d.died_at <= task.created_at), max(d.seq)
                into chosen, last_seq
                from postbus_data.match_dead(
                    reader.id, null, task.key_pattern, task.reason_like, coalesce(task.resume::bigint, 0), page
                ) as d;
                ended := last_seq is null;
                next_resume := last_seq;
                moved := case
                    when chosen is null then 0
                    when task.kind = 'redrive' then
                        postbus.redrive(reader.stream_name, reader.name, seqs => chosen, max_messages => page, to_stream => task.to_stream)
                    else postbus.discard(reader.stream_name, reader.name, seqs => chosen, max_messages => page)
                end;
            end if;
            update postbus_data.task as t
            set done_count = t.done_count + moved,
                resume = next_resume,
                noted_at = now_at,
                paced_at = case when t.rate is null then now_at else task.paced_at + make_interval(secs => moved / t.rate) end,
                state = case when ended then 'done' else 'running' end,
                ended_at = case when ended then now_at end
            where t.id = task.id;
            -- A step may have moved nothing, and there is more.
            total := total + greatest(moved, case when ended or task.kind = 'move' then 0 else 1 end);
        exception
            -- A lock or a conflict passes; the step is tried again.
            when lock_not_available or deadlock_detected or serialization_failure or query_canceled then
                continue;
            when others then
                update postbus_data.task as t
                set state = 'failed', last_error = left(sqlerrm, 1000), noted_at = now_at, ended_at = now_at
                where t.id = task.id;
        end;
    end loop;
    if exists (select from postbus_data.task as t where t.ended_at < now_at - interval '7 days') then
        delete from postbus_data.task as t where t.ended_at < now_at - interval '7 days';
    end if;
    return total;
end
$$;

create or replace function postbus.start_task(
    stream text,
    consumer text,
    kind text,
    key_pattern text default null,
    reason_like text default null,
    to_stream text default null,
    from_seq bigint default null,
    to_seq bigint default null,
    from_time timestamptz default null,
    to_time timestamptz default null,
    rate double precision default null
)
returns bigint
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Begin to redrive or discard dead letters of a consumer, to replay messages to it, or to move its messages to another stream, in the background: in steps, by whichever process
does the upkeep (a server, an open bus, or whoever calls run_tasks). It goes on when processes are killed.

kind          redrive, discard, replay or move. The other arguments choose messages as the functions of these names do. A move publishes
              each message that the consumer could receive to another stream, and acks it, in one transaction.
key_pattern   only messages whose key matches.
reason_like   only dead letters whose reason matches this LIKE pattern; not for a replay.
to_stream     for a redrive: publish them to this stream instead. For a move: to this stream; null: to the stream whose dead letter each is.
from_seq, to_seq, from_time, to_time
              for a replay: only messages of this range.
rate          the largest number of messages per second; null: as fast as it goes.

Returns  the number of the task. See list_tasks for its progress, cancel_task to end it.
Raises   PB400 for an argument out of range or one that the kind does not take, PB404 for an unknown stream, consumer or to_stream, PB409
         when to_stream holds another data type.
Touches  task (insert).
*/
#variable_conflict use_variable
declare
    reader postbus_data.consumer := postbus_data.find_consumer(stream, consumer);
    source_type text := (select s.data_type from postbus_data.stream as s where s.id = reader.stream_id);
    -- Raises if the pattern is not valid.
    checked text := postbus_data.pattern_regex(key_pattern);
    has_range boolean := num_nonnulls(from_seq, to_seq, from_time, to_time) > 0;
    total bigint;
    made bigint;
begin
    if (kind in ('redrive', 'discard', 'replay', 'move')) is not true then
        raise exception using errcode = 'PB400', message = format('kind = %L is not a task', kind), hint = 'it is redrive, discard, replay or move';
    end if;
    if rate is not null and (rate between 0.001 and 1000000) is not true then
        raise exception using errcode = 'PB400', message = format('rate = %s is not between 0.001 and 1000000', rate);
    end if;
    if reader.is_group then
        raise exception using
            errcode = 'PB409', message = format('%s is a group, which has no dead letters and nothing to replay', consumer),
            hint = 'move its position: postbus.seek';
    end if;
    if (kind = 'replay' and num_nonnulls(reason_like, to_stream) > 0) or (kind <> 'replay' and has_range) or (kind = 'discard' and to_stream is not null)
        or (kind = 'move' and num_nonnulls(key_pattern, reason_like) > 0)
    then
        raise exception using
            errcode = 'PB400',
            message = format('a %s does not take one of these arguments', kind),
            hint = 'a replay takes a range and key_pattern; a redrive key_pattern, reason_like and to_stream; a discard key_pattern and reason_like; a move to_stream';
    end if;
    if kind = 'move' and to_stream = reader.stream_name then
        raise exception using
            errcode = 'PB400', message = format('to_stream = "%s" is the stream that messages are moved from', to_stream),
            hint = 'name another stream';
    end if;
    if to_stream is not null and (select s.data_type from postbus_data.stream as s where s.id = postbus_data.stream_id(to_stream)) <> source_type then
        raise exception using errcode = 'PB409', message = format('stream "%s" does not hold %s', to_stream, source_type);
    end if;
    if kind = 'move' then
        select b.unread + b.waiting into total from postbus_data.count_backlog(reader.id) as b;
    elsif kind <> 'replay' and checked is null and reason_like is null then
        select count(*)
        into total
        from (select from postbus_data.dead_letter as d where d.consumer_id = reader.id limit 10000) as d;
        -- More are not counted.
        total := nullif(total, 10000);
    end if;
    insert into postbus_data.task (
        consumer_id, kind, key_pattern, reason_like, to_stream, from_seq, to_seq, from_time, to_time, rate, total_estimate, created_by
    )
    values (reader.id, kind, key_pattern, reason_like, to_stream, from_seq, to_seq, from_time, to_time, rate, total, session_user)
    returning id into made;
    return made;
end
$$;

create or replace function postbus.create_aws_key(token_id integer, out access_key_id text, out secret_access_key text)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Make a key pair for clients of AWS, with which they sign requests: what they may do is what the token allows. Both parts are random and made here, so that
no log of statements has the secret. Unlike a token's text, the secret is stored as it is, since a signature can only be verified by it.

Returns  the pair; nothing shows the secret again.
Raises   PB404 for an unknown or revoked token, PB409 when it has a pair already.
Touches  token (update).
*/
declare
    chosen postbus_data.token;
    alphabet constant text := 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';
begin
    select t.* into chosen from postbus_data.token as t where t.id = token_id and t.revoked_at is null for update;
    if chosen.id is null then
        raise exception using errcode = 'PB404', message = format('token %s does not exist', coalesce(token_id::text, 'null')), hint = 'see: postbus token ls';
    end if;
    if chosen.access_key_id is not null then
        raise exception using
            errcode = 'PB409', message = format('token %s has a key pair already', token_id), hint = 'create another token: postbus token create NAME --aws';
    end if;
    select 'PBUS' || string_agg(substr(alphabet, 1 + get_byte(sha256(uuid_send(gen_random_uuid())), 0) % 32, 1), '' order by n)
    into access_key_id
    from generate_series(1, 16) as n;
    -- Two random ids of 122 bits each.
    secret_access_key := encode(sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())), 'hex');
    update postbus_data.token as t
    set access_key_id = create_aws_key.access_key_id,
        aws_secret = create_aws_key.secret_access_key
    where t.id = token_id;
end
$$;

create or replace function postbus.create_token(
    name text,
    digest text,
    scopes text[],
    streams text[] default array['*'],
    rate_limit double precision default null,
    expires_at timestamptz default null
)
returns postbus.token_info
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Store a token for the HTTP server.

digest      the SHA-256 of the token, as 64 hexadecimal digits. The token itself never reaches Postgres, so no log contains it.
scopes      publish, consume, manage: at least one.
streams     the names of the streams it is for, in which "*" stands for any characters.
rate_limit  how many requests per second; null: no limit.

Returns  the stored token.
Raises   PB400 for an invalid value, PB409 when the digest is already stored.
Touches  token (insert).
*/
#variable_conflict use_variable
declare
    problem text;
    stored postbus.token_info;
begin
    problem := case
        when name is null or name !~ '^[A-Za-z0-9_.@ -]{1,100}$'
            then 'the name of a token is 1 to 100 letters, digits, spaces or "_.@-"'
        when digest is null or digest !~ '^[0-9a-f]{64}$'
            then 'the digest of a token is 64 hexadecimal digits'
        when scopes is null or cardinality(scopes) = 0 or not scopes <@ array['publish', 'consume', 'manage']
            then 'scopes are some of publish, consume, manage'
        when streams is null or cardinality(streams) not between 1 and 100
            or exists (select from unnest(streams) as s where s is null or s !~ '^[A-Za-z0-9_*-]{1,63}$')
            then 'streams are 1 to 100 names, in which "*" stands for any characters'
        when rate_limit is not null and (rate_limit > 0 and rate_limit <= 1000000) is not true
            then 'rate_limit is between 0 and 1000000'
    end;
    if problem is not null then
        raise exception using errcode = 'PB400', message = problem;
    end if;
    insert into postbus_data.token as t (name, digest, scopes, streams, rate_limit, expires_at)
    values (name, digest, scopes, streams, rate_limit, expires_at)
    on conflict do nothing
    returning t.id, t.name, t.digest, t.scopes, t.streams, t.rate_limit, t.created_at, t.expires_at, t.revoked_at
    into stored;
    if stored.id is null then
        raise exception using errcode = 'PB409', message = 'the token already exists';
    end if;
    return stored;
end
$$;

create or replace function postbus.find_token(digest text)
returns setof postbus.token_info
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
/* The token with this digest, even if it is expired or revoked; no row when there is none. */
    select t.id, t.name, t.digest, t.scopes, t.streams, t.rate_limit, t.created_at, t.expires_at, t.revoked_at
    from postbus_data.token as t
    where t.digest = find_token.digest
$$;

create or replace function postbus_data.find_aws_key(access_key_id text)
returns table (digest text, secret_access_key text)
language sql
stable
as $$
/* The digest of the token that a key pair belongs to, and the secret, for the server that verifies a signature; no row when there is none. */
    select t.digest, t.aws_secret
    from postbus_data.token as t
    where t.access_key_id = find_aws_key.access_key_id
        and t.revoked_at is null
$$;

create or replace function postbus.list_tokens()
returns setof postbus.token_info
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
/* The tokens of the HTTP server that are not revoked, by id, including expired ones. */
    select t.id, t.name, t.digest, t.scopes, t.streams, t.rate_limit, t.created_at, t.expires_at, t.revoked_at
    from postbus_data.token as t
    where t.revoked_at is null
    order by t.id
$$;

create or replace function postbus.revoke_token(id integer)
returns boolean
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Revoke a token permanently. Servers notice within a second.

Returns  whether a token with that id exists; revoking it again changes nothing.
Touches  token (update).
*/
begin
    update postbus_data.token as t
    set revoked_at = coalesce(t.revoked_at, clock_timestamp()),
        aws_secret = null
    where t.id = revoke_token.id;
    return found;
end
$$;

create or replace function postbus_data.note_maintenance()
returns void
language sql
volatile
as $$
/*
Note that all streams have been maintained, unless another session is noting it. While a process of the library holds the upkeep,
that says nearly as much, so once a minute is enough: an idle database has little to write.

Touches  upkeep (update).
Locks    the row of upkeep, until the transaction ends; it does not wait for it.
*/
    update postbus_data.upkeep as u
    set maintained_at = clock_timestamp()
    where u.singleton in (
        select o.singleton
        from postbus_data.upkeep as o
        where (
            o.held_at > clock_timestamp() - interval '10 seconds'
            and o.maintained_at > clock_timestamp() - interval '1 minute'
        ) is not true
        for update skip locked
    )
$$;

create or replace function postbus_data.take_upkeep(holder uuid, lasts interval)
returns boolean
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Take the upkeep for one process of the library, or keep it: sweeping and maintaining all streams again and again. Others get it
when it was not kept for as long as it lasts. Whoever maintains without asking, such as the server or cron, keeps it from all.

Returns  whether the holder has it now.
Touches  upkeep (update).
Locks    the row of upkeep, until the transaction ends; it does not wait for it.
*/
declare
    free_since timestamptz := clock_timestamp() - lasts;
begin
    -- A crash may forget who it was: then it is free a little earlier.
    perform set_config('synchronous_commit', 'off', true);
    update postbus_data.upkeep as u
    set holder = take_upkeep.holder,
        held_at = clock_timestamp()
    where u.singleton in (select o.singleton from postbus_data.upkeep as o for update skip locked)
        and (
            u.holder = take_upkeep.holder
            or greatest(u.held_at, u.maintained_at) is null
            -- A clock that was set back must not keep it for long.
            or greatest(u.held_at, u.maintained_at) not between free_since and clock_timestamp() + lasts
        );
    return found;
end
$$;

create or replace function postbus.alter_webhook_source(
    name text,
    stream text default null,
    secrets text[] default null,
    options jsonb default null,
    key_template text default null,
    id_from text default null,
    keep_headers text[] default null,
    dedup boolean default null,
    max_body_bytes integer default null,
    max_rate double precision default null,
    paused boolean default null
)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Change a webhook source. What is null stays as it is; its kind cannot be changed. Servers notice within a second.

secrets   replace the ones there are. To replace one without refusing a request, give both for a while.
id_from   '' puts it back to where its kind has it.
max_rate  0: no limit.
paused    refuse requests, with 503, so that senders repeat them.

Raises   PB400 for an invalid value, PB404 for an unknown source or stream.
Touches  webhook_source (update).
*/
#variable_conflict use_variable
declare
    wanted postbus_data.webhook_source := postbus_data.lock_webhook_source(name);
begin
    if stream is not null then
        wanted.stream_id := postbus_data.stream_id(stream);
    end if;
    wanted.secrets := coalesce(secrets, wanted.secrets);
    wanted.options := coalesce(options, wanted.options);
    wanted.key_template := coalesce(key_template, wanted.key_template);
    wanted.id_from := nullif(coalesce(id_from, wanted.id_from), '');
    wanted.keep_headers := coalesce(keep_headers, wanted.keep_headers);
    wanted.dedup := coalesce(dedup, wanted.dedup);
    wanted.max_body_bytes := coalesce(max_body_bytes, wanted.max_body_bytes);
    wanted.max_rate := nullif(coalesce(max_rate, wanted.max_rate), 0);
    wanted.paused := coalesce(paused, wanted.paused);
    perform postbus_data.check_webhook_source(wanted);
    update postbus_data.webhook_source as s
    set stream_id = wanted.stream_id,
        secrets = wanted.secrets,
        options = wanted.options,
        key_template = wanted.key_template,
        id_from = wanted.id_from,
        keep_headers = wanted.keep_headers,
        dedup = wanted.dedup,
        max_body_bytes = wanted.max_body_bytes,
        max_rate = wanted.max_rate,
        paused = wanted.paused
    where s.id = wanted.id;
end
$$;

create or replace function postbus.create_webhook_source(
    name text,
    stream text,
    kind text,
    secrets text[] default '{}',
    options jsonb default '{}',
    key_template text default null,
    id_from text default null,
    keep_headers text[] default null,
    dedup boolean default true,
    max_body_bytes integer default 1048576,
    max_rate double precision default null
)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Create a webhook source: requests to /api/webhook/<name> of a server become messages of a stream, once they are verified.

kind            who sends, and so how a request is verified: standard, stripe, github, shopify, slack, hmac, basic, header or none.
secrets         any of them verifies a request; several while one is replaced.
options         what else the kind needs, as the library documents it: for hmac a header, algorithm, encoding, prefix and template.
key_template    what keys are made from, by default {source}.{type}.{id}; also {header:NAME}, {json:/POINTER} and {sha256}.
id_from         where the id of an event is, header:NAME, json:/POINTER or sha256; null: where its kind has it, else sha256.
keep_headers    which headers go along besides those of its kind.
dedup           do not publish an event twice within the stream's dedup_window.
max_body_bytes  the largest body, 1 to 26,214,400; also when it is unpacked.
max_rate        requests per second that each process accepts; null: no limit.

Raises   PB400 for an invalid value, also for a dedup window that is shorter than the time for which its kind of sender repeats; PB404 for an
         unknown stream, PB409 when the source exists.
Touches  webhook_source (insert).
*/
#variable_conflict use_variable
declare
    wanted postbus_data.webhook_source;
begin
    wanted.name := name;
    wanted.stream_id := postbus_data.stream_id(stream);
    wanted.kind := kind;
    wanted.secrets := coalesce(secrets, '{}');
    wanted.options := coalesce(options, '{}');
    wanted.key_template := coalesce(key_template, '{source}.{type}.{id}');
    wanted.id_from := id_from;
    wanted.keep_headers := coalesce(keep_headers, '{}');
    wanted.dedup := dedup;
    wanted.max_body_bytes := max_body_bytes;
    wanted.max_rate := max_rate;
    perform postbus_data.check_webhook_source(wanted);
    insert into postbus_data.webhook_source as s (
        name, stream_id, kind, secrets, options, key_template, id_from, keep_headers, dedup, max_body_bytes, max_rate
    )
    values (
        wanted.name, wanted.stream_id, wanted.kind, wanted.secrets, wanted.options, wanted.key_template, wanted.id_from, wanted.keep_headers,
        wanted.dedup, wanted.max_body_bytes, wanted.max_rate
    )
    on conflict do nothing;
    if not found then
        raise exception using
            errcode = 'PB409',
            message = format('webhook source "%s" already exists', name),
            hint = 'change it with alter_webhook_source, or drop it first';
    end if;
end
$$;

create or replace function postbus.drop_webhook_source(name text)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Remove a webhook source. What it has published stays; requests to it are answered 404.

Raises   PB404 for an unknown source.
Touches  webhook_source, webhook_refusal (delete).
*/
declare
    dropped integer := (postbus_data.lock_webhook_source(name)).id;
begin
    delete from postbus_data.webhook_source as s where s.id = dropped;
end
$$;

create or replace function postbus_data.check_webhook_source(wanted postbus_data.webhook_source)
returns void
language plpgsql
as $$
/* Raise PB400 for settings that a webhook source cannot have. What its options mean is checked by the library. */
declare
    time_window interval;
    stream_name text;
    needed interval;
    problem text;
begin
    perform postbus_data.check_name('webhook source', wanted.name);
    problem := case
        when (wanted.kind in ('standard', 'stripe', 'github', 'shopify', 'slack', 'hmac', 'basic', 'header', 'none')) is not true
            then format('kind = %L is not one of standard, stripe, github, shopify, slack, hmac, basic, header, none', wanted.kind)
        when wanted.kind = 'none' and cardinality(wanted.secrets) > 0 then 'kind = none has no secrets'
        when wanted.kind <> 'none' and cardinality(wanted.secrets) not between 1 and 10
            then format('secrets are missing: kind = %s needs 1 to 10', wanted.kind)
        when exists (select from unnest(wanted.secrets) as s where (length(s) between 1 and 1000) is not true)
            then 'secrets have 1 to 1000 characters'
        when jsonb_typeof(wanted.options) <> 'object' or length(wanted.options::text) > 10000 then 'options are not an object of at most 10000 bytes'
        when length(wanted.key_template) not between 1 and 500 then 'key_template has 1 to 500 characters'
        when wanted.id_from !~ '^(sha256|header:[A-Za-z0-9_-]{1,100}|json:(/[^/]{1,100}){1,10})$'
            then 'id_from is not header:NAME, json:/POINTER or sha256'
        when cardinality(wanted.keep_headers) > 50 or exists (
            select from unnest(wanted.keep_headers) as h where (h ~ '^[a-z0-9_-]{1,100}$') is not true
        ) then 'keep_headers are at most 50 names of headers in lower case'
        when wanted.keep_headers && array['authorization', 'proxy-authorization', 'cookie']
            then 'keep_headers has one that holds credentials'
        when wanted.dedup is null then 'dedup is missing'
        when (wanted.max_body_bytes between 1 and 26214400) is not true
            then format('max_body_bytes = %s is not between 1 and 26214400', wanted.max_body_bytes)
        when wanted.max_rate is not null and (wanted.max_rate between 0.001 and 1000000) is not true
            then format('max_rate = %s is not between 0.001 and 1000000', wanted.max_rate)
    end;
    if problem is not null then
        raise exception using errcode = 'PB400', message = problem;
    end if;
    if wanted.dedup then
        -- For so long they repeat what was not answered.
        needed := case wanted.kind
            when 'stripe' then interval '3 days'
            when 'standard' then interval '3 days'
            when 'github' then interval '3 days'
            when 'shopify' then interval '4 hours'
            else interval '1 hour'
        end;
        select s.dedup_window, s.name into time_window, stream_name from postbus_data.stream as s where s.id = wanted.stream_id;
        if (time_window >= needed) is not true then
            raise exception using
                errcode = 'PB400',
                message = format(
                    'dedup = true needs a dedup_window of at least %s, and that of stream "%s" is %s', needed, stream_name, coalesce(time_window::text, 'none')
                ),
                hint = format(
                    'widen it: postbus stream edit %s --dedup-window %s; or let events that are repeated be published twice, without dedup',
                    stream_name, extract(epoch from needed)::integer || 's'
                );
        end if;
    end if;
end
$$;

create or replace function postbus_data.lock_webhook_source(name text)
returns postbus_data.webhook_source
language plpgsql
as $$
/* The webhook source with that name, locked until the transaction ends. Raises PB404 when there is none. */
declare
    locked postbus_data.webhook_source;
begin
    select s.* into locked from postbus_data.webhook_source as s where s.name = lock_webhook_source.name for update;
    if locked.id is null then
        raise exception using errcode = 'PB404', message = format('webhook source "%s" does not exist', left(name, 80));
    end if;
    return locked;
end
$$;

create or replace function postbus_data.note_webhook_refusal(source_id integer, status integer, reason text, refused_count integer)
returns void
language sql
volatile
as $$
/*
Note that a webhook source has refused requests; the last fifty notes stay.

Touches  webhook_refusal (insert, delete).
*/
    insert into postbus_data.webhook_refusal (source_id, status, reason, refused_count)
    select s.id, note_webhook_refusal.status, left(note_webhook_refusal.reason, 500), note_webhook_refusal.refused_count
    from postbus_data.webhook_source as s
    where s.id = note_webhook_refusal.source_id;
    delete from postbus_data.webhook_refusal as r
    where r.source_id = note_webhook_refusal.source_id
        and r.n < (
            select last.n
            from postbus_data.webhook_refusal as last
            where last.source_id = note_webhook_refusal.source_id
            order by last.n desc
            offset 49
            limit 1
        );
$$;

create or replace function postbus_data.webhook_source_to_receive(name text)
returns table (
    id integer, stream text, data_type text, kind text, secrets text[], options jsonb, key_template text, id_from text, keep_headers text[],
    dedup boolean, max_body_bytes integer, max_rate double precision, paused boolean
)
language sql
stable
as $$
/* A webhook source for the server that receives for it, with its secrets; no row if there is none. */
    select
        s.id, t.name, t.data_type, s.kind, s.secrets, s.options, s.key_template, s.id_from, s.keep_headers, s.dedup, s.max_body_bytes,
        s.max_rate, s.paused
    from postbus_data.webhook_source as s
    join postbus_data.stream as t on t.id = s.stream_id
    where s.name = webhook_source_to_receive.name
$$;

create or replace function postbus.list_webhook_sources(name text default null)
returns setof postbus.webhook_source_info
language sql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/* The webhook sources, or only that with a name, in order of their names, with the last requests that they refused. Secrets are not shown. */
    select
        s.name, t.name, s.kind, cardinality(s.secrets), s.options - array['verify_token', 'client_state'], s.key_template, s.id_from, s.keep_headers,
        s.dedup, s.max_body_bytes, s.max_rate, s.paused, s.created_at,
        coalesce(
            (
                select jsonb_agg(
                    jsonb_build_object(
                        'refused_at', r.refused_at, 'status', r.status, 'reason', r.reason, 'refused_count', r.refused_count
                    )
                    order by r.n desc
                )
                from (
                    select f.* from postbus_data.webhook_refusal as f where f.source_id = s.id order by f.n desc limit 10
                ) as r
            ),
            '[]'
        )
    from postbus_data.webhook_source as s
    join postbus_data.stream as t on t.id = s.stream_id
    where list_webhook_sources.name is null or s.name = list_webhook_sources.name
    order by s.name
$$;

create or replace function postbus_data.ack_template()
returns text
language sql
immutable
as $function$
/* The text of templates/ack.sql. */
    select $template$
-- What postbus.ack does, for one stream. See create_ack_function.
create or replace function postbus_data.ack_{stream_id}(stream text, consumer text, ack_ids text[])
returns integer
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $body$
#variable_conflict use_variable
declare
    first_id text := ack_ids[1];
    seqs bigint[];
    token bigint;
    acked integer;
    reader postbus_data.consumer;
begin
    -- A whole lease, or all of its messages in their order: one statement is all.
    if length(first_id) > 16 and left(ack_ids[cardinality(ack_ids)], 16) = left(first_id, 16) then
        seqs := array(
            select substr(i.id, 18)::bigint
            from unnest(ack_ids) as i (id)
            where left(i.id, 16) = left(first_id, 16)
                and i.id ~ '^.{16}-[0-9]{1,18}$'
        );
    end if;
    if cardinality(ack_ids) = coalesce(cardinality(seqs), 1) then
        delete from postbus_data.lease as l
        using postbus_data.consumer as c
        where l.token = postbus_data.parse_token(left(first_id, 16))
            and l.piece = 0
            and l.consumer_id + 0 = c.id
            and l.epoch = c.epoch
            and not l.has_history
            and not l.has_saved
            and not l.is_split
            and (l.seqs = seqs or length(first_id) = 16)
            and c.stream_name = {stream_name}
            and c.name = consumer
            and current_setting('transaction_isolation'::text) = 'read committed'::text
        returning l.token, cardinality(l.seqs) into token, acked;
    end if;
    if token is null then
        reader := postbus_data.find_consumer({stream_name}, consumer);
        perform postbus_data.check_isolation();
        return postbus_data.ack_deliveries(reader.id, reader.epoch, ack_ids);
    elsif exists (select from postbus_data.settled as s where s.token = token) then
        -- In a later statement: the first has waited for whoever was settling some of its messages.
        with settled as (delete from postbus_data.settled as s where s.token = token returning s.seq)
        select acked - count(*) into acked from settled as s;
    end if;
    return acked;
end
$body$;
$template$
$function$;

create or replace function postbus_data.ack_and_receive_template()
returns text
language sql
immutable
as $function$
/* The text of templates/ack_and_receive.sql. */
    select $template$
-- What ack_and_receive does, for one stream and its newest segment: this is where most messages are claimed. See create_receive_function.
create or replace function postbus_data.ack_and_receive_{stream_id}(
    stream text, consumer text, max_messages integer, ack_wait interval, expected_type text, ack_ids text[], by_position boolean
)
returns table (
    acked integer, lease text, partition integer, seqs bigint[], attempts integer[], keys text[], data text[], bytes bytea[], headers jsonb[],
    published_at timestamptz[], saved json
)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $body$
#variable_conflict use_variable
declare
    reader record;
    place record;
    first integer := floor(random() * {partition_count});
    chosen integer := {partition_base} + first;
    is_plain boolean;
    is_ready boolean := false;
    is_busy boolean;
    is_over boolean;
    begin_with integer;
    partitions integer[];
    horizon bigint;
    remaining integer;
    is_whole boolean;
    has_expired boolean;
    token bigint;
    lease_until timestamptz;
begin
    -- Each expression outside a statement is set up anew in every transaction, which takes longer than to evaluate it: so they are few.
    select
        c.id,
        c.epoch,
        c.ordering = 'key'::text as is_keyed,
        c.is_group,
        c.expire_after,{reader_of_levels}
        c.max_ack_pending / ({partition_count} + 1) as quota,
        s.start_seq - 1 as start_after,
        not c.is_group or ack_wait is not null as is_leased,
        clock_timestamp() + case when c.is_group then ack_wait else c.ack_wait end as lease_until,
        {is_plain}
        and c.is_plain
        and c.max_deliver is distinct from 1
        and c.max_ack_pending / ({partition_count} + 1) >= 100
        and max_messages between 1 and 1000
        and c.is_group = by_position
        and case
            when by_position then (ack_wait between interval '1 millisecond' and interval '7 days') is not false
            else ack_wait is null and c.ordering <> 'partition'::text
        end
        and not exists (
            select
            from postbus_data.due as d
            where d.consumer_id = c.id
                and d.epoch = c.epoch
                and d.lane = 0
                and d.n > coalesce(
                    (
                        select p.read_to_n
                        from postbus_data.redelivery_position as p
                        where p.consumer_id = c.id
                            and p.epoch = c.epoch
                            and p.lane = 0
                        order by p.read_to_n desc
                        limit 1
                    ),
                    0
                )
        ) as is_plain
    into reader
    from postbus_data.consumer as c
    join postbus_data.stream as s on s.id = {stream_id}
    where c.stream_name = {stream_name}
        and c.name = consumer;
    acked := 0;
    if ack_ids is not null and reader.id is not null then
        -- As ack_deliveries does, which takes longer to call than to run: nearly always one lease as a whole.
        delete from postbus_data.lease as l
        where l.token = postbus_data.parse_token(ack_ids[1])
            and l.piece = 0
            and l.consumer_id + 0 = reader.id
            and l.epoch = reader.epoch
            and not l.has_history
            and not l.has_saved
            and not l.is_split
            and cardinality(ack_ids) = 1
        returning l.token, cardinality(l.seqs) into token, acked;
        if token is null then
            acked := postbus_data.ack_deliveries(reader.id, reader.epoch, ack_ids);
        elsif exists (select from postbus_data.settled as s where s.token = token) then
            -- In a later statement: the first has waited for whoever was settling some of its messages.
            with settled as (delete from postbus_data.settled as s where s.token = token returning s.seq)
            select acked - count(*) into acked from settled as s;
        end if;
    end if;

{ack_and_receive_urgent}    -- Now and then somebody has to look whether it is time to sweep, or to say that the consumer is used.
    is_plain := reader.is_plain
        and current_setting('transaction_isolation'::text) = 'read committed'::text
        and (
            random() < 0.9::float8
            or (reader.is_group and reader.expire_after is null)
            or not postbus_data.run_periodic_work(postbus_data.find_consumer({stream_name}, consumer))
        );
    if is_plain then
        lease_until := reader.lease_until;
        is_ready := pg_try_advisory_xact_lock(postbus_data.consumer_lock_class(reader.id), chosen){or_wait};
        for turn in 1 .. 2 loop
            if is_ready then
                select
                    p.read_to_seq, p.horizon, p.pending_bound, p.segment, p.leases, p.parked_from, p.expired_count, p.missed_count, p.pending_since,
                    p.horizon - p.read_to_seq >= max_messages::bigint * {partition_count} as has_enough,
                    p.leases is null
                    and not reader.is_keyed
                    and p.segment = {segment}
                    and p.read_to_seq >= reader.start_after
                    and p.parked_from is null
                    and p.horizon - p.read_to_seq >= max_messages::bigint * {partition_count} as is_simple
                into place
                from postbus_data.position as p
                where p.consumer_id = reader.id
                    and p.epoch = reader.epoch
                    and p.partition = chosen
                order by p.read_to_seq desc
                limit 1;
                exit when place.is_simple;
                if (place.segment = {segment} and place.read_to_seq >= reader.start_after) is not true then
                    -- It has its turn, also when others have enough.
                    begin_with := chosen;
                elsif place.parked_from is not null then
                    -- So it has, unless a lease in flight may be what they are parked behind.
                    begin_with := (select chosen where not exists (select from postbus_data.lease as l where l.token = any (place.leases)));
                elsif not place.has_enough
                    and pg_sequence_last_value('postbus_data.seq_{stream_id}'::regclass) - place.horizon >= max_messages::bigint * {partition_count}
                then
                    -- So much was published since somebody looked that some of it is probably here.
                    horizon := postbus_data.horizon_of({stream_id});
                    place.horizon := horizon;
                end if;
                is_ready := begin_with is null and place.parked_from is null and place.horizon - place.read_to_seq >= max_messages::bigint * {partition_count};
                if is_ready and reader.is_keyed then
                    -- One snapshot for both: a nack makes a failure of a lease, and then its key is held by either.
                    select
                        exists (select from postbus_data.lease as l where l.token = any (place.leases)),
                        not exists (
                            select from postbus_data.waiting as w where w.consumer_id = reader.id and w.partition = chosen
                        ){no_older_failures}
                    into is_busy, is_ready;
                    begin_with := case when not is_busy and not is_ready then chosen end;
                    is_ready := is_ready and not is_busy;
                elsif is_ready and reader.is_group and place.leases is not null then
                    select count(*) > 0, bool_or(l.deadline <= clock_timestamp())
                    into is_busy, is_over
                    from postbus_data.lease as l
                    where l.token = any (place.leases);
                    begin_with := case when is_over then chosen end;
                    is_ready := not is_busy;
                end if;
            end if;
            exit when is_ready or turn = 2 or begin_with is not null;
            -- Somebody else is at it, or too little is left: one that has enough, and in order "key" nothing in flight.
            chosen := (
                select p.partition
                from (
                    select p.partition
                    from generate_series(1, least(16, {partition_count} - 1)) as n
                    cross join lateral (
                        select p.partition, p.read_to_seq, p.horizon - p.read_to_seq as distance, p.segment, p.leases
                        from postbus_data.position as p
                        where p.consumer_id = reader.id
                            and p.epoch = reader.epoch
                            and p.partition = {partition_base} + mod(chosen - {partition_base} + n, {partition_count})
                        order by p.read_to_seq desc
                        limit 1
                    ) as p
                    where p.distance >= max_messages::bigint * {partition_count}
                        and p.segment = {segment}
                        and (
                            not (reader.is_keyed or reader.is_group)
                            or not exists (select from postbus_data.lease as l where l.token = any (p.leases))
                        )
                    order by p.read_to_seq
                    offset 0
                ) as p
                where pg_try_advisory_xact_lock(postbus_data.consumer_lock_class(reader.id), p.partition)
                limit 1
            );
            is_ready := chosen is not null;
        end loop;
    end if;
    if is_ready then
        if place.pending_bound + max_messages > reader.quota then
            select r.pending_bound, r.pending_since into place.pending_bound, place.pending_since
            from postbus_data.count_in_flight(
                reader.id, reader.epoch, chosen, {partition_base}, case when reader.is_keyed then coalesce(place.leases, '{}'::bigint[]) end,
                place.pending_since
            ) as r;
        end if;
        if max_messages > {array_limit} then
            -- If all were as large as they may be, they would not fit into an array.
            select sum(octet_length(m.data)) < 67108864
            into is_ready
            from (
                select l.data::{data_type} as data
                from {log_table} as l
                where l.partition = chosen
                    and l.seq > place.read_to_seq
                    and l.seq <= place.horizon
                order by l.seq
                limit max_messages
            ) as m;
        end if;
        -- The register is read after the horizon: what lies below that is in this segment.
        if is_ready
            and place.pending_bound + max_messages <= reader.quota
            and pg_sequence_last_value('postbus_data.layout_{stream_id}'::regclass) = {layout}::bigint
        then
            select
                array_agg(m.seq), array_agg(m.key), array_agg(m.data), array_agg(m.headers), array_agg(m.published_at),
                bool_or(m.expires_at <= clock_timestamp())
            into seqs, keys, {data_column}, headers, published_at, has_expired
            from (
                select l.seq, l.key, l.data::{data_type} as data, l.headers, l.published_at, l.expires_at
                from {log_table} as l
                where l.partition = chosen
                    and l.seq > place.read_to_seq
                    and l.seq <= place.horizon
                order by l.seq
                limit max_messages
            ) as m;
            if cardinality(seqs) = max_messages and has_expired is not true then
                token := postbus_data.new_token();
                with last_place as (
                    delete from postbus_data.position as p
                    where p.consumer_id = reader.id
                        and p.epoch = reader.epoch
                        and p.partition = chosen
                        and p.read_to_seq = place.read_to_seq
                ),
                leased as (
                    insert into postbus_data.lease (token, consumer_id, epoch, partition, seqs, keys, received_at, deadline)
                    select
                        token, reader.id, reader.epoch, chosen, seqs, case when reader.is_keyed then keys end, clock_timestamp(), lease_until
                    where reader.is_leased
                )
                insert into postbus_data.position (
                    consumer_id, epoch, partition, read_to_seq, horizon, pending_bound, segment, leases, expired_count, missed_count, pending_since
                )
                values (
                    reader.id, reader.epoch, chosen, seqs[cardinality(seqs)], place.horizon,
                    case when reader.is_group then 0 else place.pending_bound + cardinality(seqs) end, {segment},
                    case when reader.is_keyed or (reader.is_group and reader.is_leased) then array[token] end, place.expired_count, place.missed_count,
                    case when place.pending_since is not null then least(place.pending_since, lease_until) end
                );
                lease := lpad(to_hex(token), 16, '0'::text);
                partition := chosen;
                return next;
                return;
            end if;
            if seqs is null then
                -- Lest it look full the next time.
                with last_place as (
                    delete from postbus_data.position as p
                    where p.consumer_id = reader.id
                        and p.epoch = reader.epoch
                        and p.partition = chosen
                        and p.read_to_seq = place.read_to_seq
                )
                insert into postbus_data.position (
                    consumer_id, epoch, partition, read_to_seq, horizon, pending_bound, segment, leases, expired_count, missed_count, pending_since
                )
                values (
                    reader.id, reader.epoch, chosen, place.horizon, place.horizon, place.pending_bound, {segment}, place.leases,
                    place.expired_count, place.missed_count, place.pending_since
                );
            end if;
        end if;
    end if;

    remaining := max_messages;
{ack_and_receive_from_many}
    return query
    select acked, b.*
    from postbus_data.receive_with_decisions(postbus_data.find_consumer({stream_name}, consumer), remaining, ack_wait, expected_type, by_position, begin_with) as b;
    if not found and remaining = max_messages then
        lease := null;
        return next;
    end if;
end
$body$;
$template$
$function$;

create or replace function postbus_data.ack_and_receive_from_many_template()
returns text
language sql
immutable
as $function$
/* The text of templates/ack_and_receive_from_many.sql. */
    select $template$
    -- No partition has enough, as with every consumer that keeps up: what there is in some of them, the oldest first. Locks, horizon and rows are
    -- separate statements, each with a snapshot younger than the one before; the register is read after the horizon.
    if is_plain and begin_with is null then
        is_whole := true;
        for turn in 0 .. ({partition_count} - 1) / {partitions_at_once} loop
            exit when remaining = 0;
            partitions := array(
                select {partition_base} + mod(g.n, {partition_count})
                from generate_series(first + turn * {partitions_at_once}, first + least((turn + 1) * {partitions_at_once}, {partition_count}) - 1) as g (n)
                where pg_try_advisory_xact_lock(postbus_data.consumer_lock_class(reader.id), {partition_base} + mod(g.n, {partition_count}))
            );
            horizon := coalesce(horizon, postbus_data.horizon_of({stream_id}));
            is_ready := pg_sequence_last_value('postbus_data.layout_{stream_id}'::regclass) = {layout}::bigint;
            is_whole := is_whole and is_ready;
            exit when not is_ready;
            for lease, partition, seqs, keys, {data_column}, headers, published_at in
                with place as materialized (
                    select
                        n as partition, p.read_to_seq, p.horizon, p.pending_bound, p.expired_count, p.missed_count, p.pending_since,
                        p.segment = {segment}
                        and p.read_to_seq >= reader.start_after
                        and p.pending_bound + remaining <= reader.quota
                        and p.parked_from is null
                        and (
                            not (reader.is_keyed or reader.is_group)
                            or not exists (select from postbus_data.lease as l where l.token = any (p.leases))
                        )
                        and (
                            not reader.is_keyed
                            or (
                                not exists (
                                    select from postbus_data.waiting as w where w.consumer_id = reader.id and w.partition = n
                                ){no_older_failures}
                            )
                        ) as is_usable
                    from unnest(partitions) as n
                    left join lateral (
                        select p.*
                        from postbus_data.position as p
                        where p.consumer_id = reader.id
                            and p.epoch = reader.epoch
                            and p.partition = n
                        order by p.read_to_seq desc
                        limit 1
                    ) as p on true
                    where p.read_to_seq < horizon
                        or (p.read_to_seq is null and exists (select from {log_table} as l where l.partition = n))
                ),
                message as materialized (
                    select l.*
                    from place as p
                    cross join lateral (
                        select l.partition, l.seq, l.key, l.data, l.headers, l.published_at, l.expires_at
                        from {log_table} as l
                        where l.partition = p.partition
                            and l.seq > p.read_to_seq
                            and l.seq <= horizon
                        order by l.seq
                        limit remaining
                    ) as l
                    where p.is_usable
                    order by l.seq
                    limit remaining
                ),
                -- What is not so simple: some have expired, or they are too large together for an array.
                unfit as materialized (
                    select from message as m where m.expires_at <= clock_timestamp()
                    union all
                    select from message as m having sum(octet_length(m.data::{data_type})) >= 67108864
                ),
                found as materialized (
                    select
                        postbus_data.new_token() as token, m.partition, array_agg(m.seq) as seqs, array_agg(m.key) as keys,
                        array_agg(m.data::{data_type}) as data, array_agg(m.headers) as headers, array_agg(m.published_at) as published_at
                    from (select m.* from message as m order by m.partition, m.seq) as m
                    where not exists (select from unfit)
                    group by m.partition
                ),
                last_place as (
                    delete from postbus_data.position as p
                    where p.consumer_id = reader.id
                        and p.epoch = reader.epoch
                        and p.partition = any (array(select f.partition from found as f))
                        and p.read_to_seq = any (array(select p.read_to_seq from found as f join place as p on p.partition = f.partition))
                ),
                leased as (
                    insert into postbus_data.lease (token, consumer_id, epoch, partition, seqs, keys, received_at, deadline)
                    select
                        f.token, reader.id, reader.epoch, f.partition, f.seqs, case when reader.is_keyed then f.keys end, clock_timestamp(),
                        lease_until
                    from found as f
                    where reader.is_leased
                ),
                moved as (
                    insert into postbus_data.position (
                        consumer_id, epoch, partition, read_to_seq, horizon, pending_bound, segment, leases, expired_count, missed_count, pending_since
                    )
                    select
                        reader.id, reader.epoch, f.partition, f.seqs[cardinality(f.seqs)], greatest(p.horizon, horizon),
                        case when reader.is_group then 0 else p.pending_bound + cardinality(f.seqs) end, {segment},
                        case when reader.is_keyed or (reader.is_group and reader.is_leased) then array[f.token] end, p.expired_count, p.missed_count,
                        case when p.pending_since is not null then least(p.pending_since, lease_until) end
                    from found as f
                    join place as p on p.partition = f.partition
                )
                select lpad(to_hex(f.token), 16, '0'::text), f.partition, f.seqs, f.keys, f.data, f.headers, f.published_at
                from found as f
                union all
                -- Something is left that is not so simple.
                select null, null, null, null, null, null, null
                where exists (select from unfit) or exists (select from place as p where p.is_usable is not true)
            loop
                if lease is null then
                    is_whole := false;
                else
                    remaining := remaining - cardinality(seqs);
                    return next;
                end if;
            end loop;
        end loop;
        if remaining = 0 or (remaining < max_messages and is_whole) then
            return;
        end if;
    end if;
$template$
$function$;

create or replace function postbus_data.ack_and_receive_urgent_template()
returns text
language sql
immutable
as $function$
/* The text of templates/ack_and_receive_urgent.sql. */
    select $template$
    -- Urgent messages go first. They are counted when they are published, so that most receives need not look for any: what was counted is noted when
    -- all of it has been taken.
    if reader.id is not null and not reader.is_group and (
        reader.ageing is not null
        or pg_sequence_last_value('postbus_data.urgent_{stream_id}'::regclass) > coalesce(
            (
                select u.read_to_count
                from postbus_data.urgent_position as u
                where u.consumer_id = reader.id
                    and u.epoch = reader.epoch
                order by u.read_to_count desc
                limit 1
            ),
            0
        )
        -- Failed ones that are due. In order "key" they wait where they failed. A call in the condition would keep it from the index.
        or case
            when reader.is_keyed then exists (
                select
                from postbus_data.waiting as w
                where w.consumer_id + 0 = reader.id
                    and w.due_at <= reader.now_at
                    and w.partition >= 500000000
            )
            else {has_urgent_due}
        end
    )
    then
        return query
        select acked, b.*
        from postbus_data.receive_with_decisions(
            postbus_data.find_consumer({stream_name}, consumer), max_messages, ack_wait, expected_type, by_position, null
        ) as b;
        if not found then
            lease := null;
            return next;
        end if;
        return;
    end if;

$template$
$function$;

create or replace function postbus_data.claim_segment_template()
returns text
language sql
immutable
as $function$
/* The text of templates/claim_segment.sql. */
    select $template$
-- Leases messages of one partition in one segment, or only reads them, where ack_and_receive's fast path does not serve. See
-- create_claim_function.
create or replace function postbus_data.claim_{stream_id}_{segment}(reader postbus_data.consumer, claim postbus_data.receive_state)
returns postbus_data.batch
language plpgsql
volatile
as $body$
#variable_conflict use_variable
declare
    partition integer := (claim.place).partition;
    after_seq bigint := claim.after_seq;
    to_seq bigint := claim.to_seq;
    wanted integer := claim.wanted;
    has_expired boolean;
    seqs bigint[];
    keys text[];
    expired bigint[];
    last_seq bigint;
    scanned integer;
    picked postbus_data.chosen_messages;
    batch postbus_data.batch;
begin
    if claim.scan is null and claim.blocked is null and ({is_unversioned} or claim.lease_until is null) then
        if wanted > {array_limit} then
            -- An array holds less than 1 GiB.
            select greatest(count(*), 1)
            into wanted
            from (
                select sum(octet_length(l.data::{data_type})) over (order by l.seq) as size
                from {log_table} as l
                where l.partition = partition
                    and l.seq > after_seq
                    and l.seq <= to_seq
                order by l.seq
                limit wanted
            ) as m
            where m.size < 268435456;
        end if;
        select
            array_agg(m.seq), array_agg(m.key), array_agg(m.data), array_agg(m.headers), array_agg(m.published_at),
            bool_or(m.expires_at <= clock_timestamp())
        into batch.seqs, batch.keys, batch.{data_column}, batch.headers, batch.published_at, has_expired
        from (
            select l.seq, l.key, l.data::{data_type} as data, l.headers, l.published_at, l.expires_at
            from {log_table} as l
            where l.partition = partition
                and l.seq > after_seq
                and l.seq <= to_seq
            order by l.seq
            limit wanted
        ) as m;
        batch.partition := partition;
        -- Whoever has no lease to give only wants to look.
        if batch.seqs is null or claim.lease_until is null then
            return batch;
        end if;
        if has_expired is not true then
            batch.lease := postbus_data.lease_messages(reader, claim, batch.seqs, batch.keys, batch.seqs[cardinality(batch.seqs)]);
            return batch;
        end if;
    end if;

    -- Some may be filtered out, parked or expired.
    select
        array_agg(m.seq) filter (where m.matches and not m.expired),
        array_agg(m.key) filter (where m.matches and not m.expired),
        array_agg(m.seq) filter (where m.matches and m.expired),
        case when count(*) = coalesce(claim.scan, wanted) then max(m.seq) else to_seq end,
        count(*)
    into seqs, keys, expired, last_seq, scanned
    from (
        select
            l.seq,
            l.key,
            coalesce(l.expires_at <= clock_timestamp(), false) as expired,
            (reader.filter_key_regex is null or coalesce(l.key ~ reader.filter_key_regex, false))
            and (reader.filter_headers is null or coalesce(l.headers @> reader.filter_headers, false))
            and (reader.filter_headers_not is null or not coalesce(l.headers @> any (reader.filter_headers_not), false))
            and {matches_data}
            and {is_current} as matches
        from {log_table} as l
        where l.partition = partition
            and l.seq > after_seq
            and l.seq <= to_seq
        order by l.seq
        limit coalesce(claim.scan, wanted)
    ) as m;
    picked := postbus_data.choose_messages(reader, claim, seqs, keys, expired, last_seq);
    if picked.seqs is null then
        if picked.last_seq > (picked.place).read_to_seq then
            perform postbus_data.advance_position(picked.place, picked.last_seq);
        end if;
        -- It has moved on by itself, and says how many it looked at.
        batch := null;
        batch.attempts := array[scanned];
        return batch;
    end if;
    select array_agg(m.seq), array_agg(m.key), array_agg(m.data), array_agg(m.headers), array_agg(m.published_at)
    into batch.seqs, batch.keys, batch.{data_column}, batch.headers, batch.published_at
    from (
        select l.seq, l.key, l.data::{data_type} as data, l.headers, l.published_at
        from {log_table} as l
        where l.partition = partition
            and l.seq = any (picked.seqs)
        order by l.seq
    ) as m;
    batch.partition := partition;
    claim.place := picked.place;
    batch.lease := postbus_data.lease_messages(reader, claim, batch.seqs, batch.keys, picked.last_seq);
    return batch;
end
$body$;
$template$
$function$;

create or replace function postbus_data.publish_template()
returns text
language sql
immutable
as $function$
/* The text of templates/publish.sql. */
    select $template$
-- What postbus.publish does, for one stream whose table, partitions and limits are known. See create_publish_functions.
create or replace function postbus_data.publish_{stream_id}(key text, data {data_type}, headers jsonb)
returns bigint
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $body$
#variable_conflict use_variable
declare
    hash bytea := sha256(convert_to({channel}, 'UTF8'::name));
    seq bigint;
begin
    if {is_refused}
        or (
            case
                when pg_current_xact_id_if_assigned() is null
                then pg_try_advisory_xact_lock_shared({lock_class}, postbus_data.publisher_lock_key(pg_sequence_last_value('postbus_data.seq_{stream_id}'::regclass)))
                else postbus_data.lock_horizon({stream_id}, 'postbus_data.seq_{stream_id}'::regclass)
            end
        ) is not true
        or (pg_sequence_last_value('postbus_data.layout_{stream_id}'::regclass) = {layout}::bigint) is not true
        or (length(key) <= 255 and postbus_data.tokens_are_valid(key)) is false
        or (octet_length(data) <= {max_message_bytes}) is not true
        or headers is not null
    then
        return postbus.publish({stream_name}, key, {data_argument} => data, headers => headers);
    end if;
    seq := nextval('postbus_data.seq_{stream_id}'::regclass);
    if pg_sequence_last_value('postbus_data.layout_{stream_id}'::regclass) <> {layout}::bigint then
        -- See publish. This number stays unused.
        return postbus.publish({stream_name}, key, {data_argument} => data);
    end if;
    insert into {log_table} (seq, published_at, partition, key, data)
    values (
        seq,
        clock_timestamp(),
        {partition_base} + coalesce(mod((get_byte(hash, 0) << 16) | (get_byte(hash, 1) << 8) | get_byte(hash, 2), {partition_count}), mod(seq, {partition_count}::bigint)::integer),
        key,
        {content}
    );
    return seq;
end
$body$;
$template$
$function$;

create or replace function postbus_data.publish_many_template()
returns text
language sql
immutable
as $function$
/* The text of templates/publish_many.sql. */
    select $template$
-- What postbus.publish_many does, for one stream whose table, partitions and limits are known. See create_publish_functions.
create or replace function postbus_data.publish_many_{stream_id}(keys text[], data {data_type}[], headers jsonb[])
returns bigint[]
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $body$
#variable_conflict use_variable
declare
    message_count integer := cardinality(data);
    published_at timestamptz;
    seqs bigint[];
begin
    if {is_refused}
        or (
            case
                when pg_current_xact_id_if_assigned() is null
                then pg_try_advisory_xact_lock_shared({lock_class}, postbus_data.publisher_lock_key(pg_sequence_last_value('postbus_data.seq_{stream_id}'::regclass)))
                else postbus_data.lock_horizon({stream_id}, 'postbus_data.seq_{stream_id}'::regclass)
            end
        ) is not true
        or (pg_sequence_last_value('postbus_data.layout_{stream_id}'::regclass) = {layout}::bigint) is not true
        or (message_count between 1 and 10000) is not true
        or (cardinality(keys) = message_count) is not true
        or array_ndims(keys) + array_ndims(data) > 2
        or (postbus_data.tokens_are_valid(array_to_string(keys, '.'::text)) is false and num_nonnulls(variadic keys) > 0)
        or headers is not null
        or (
            select max(length(m.key)) > 255
                or count(m.data) < message_count
                or max(octet_length(m.data)) > {max_message_bytes}
            from (select unnest(keys) as key, unnest(data) as data) as m
        )
    then
        return postbus.publish_many({stream_name}, keys, {data_argument} => data, headers => headers);
    end if;
    select array_agg(nextval('postbus_data.seq_{stream_id}'::regclass)) into seqs from generate_series(1, message_count);
    if pg_sequence_last_value('postbus_data.layout_{stream_id}'::regclass) <> {layout}::bigint then
        -- See publish. These numbers stay unused.
        return postbus.publish_many({stream_name}, keys, {data_argument} => data);
    end if;
    published_at := clock_timestamp();
    insert into {log_table} (seq, published_at, partition, key, data)
    select
        m.seq,
        published_at,
        {partition_base} + coalesce(mod((get_byte(m.hash, 0) << 16) | (get_byte(m.hash, 1) << 8) | get_byte(m.hash, 2), {partition_count}), mod(m.seq, {partition_count}::bigint)::integer),
        m.key,
        {contents}
    from (
        select u.*, sha256(convert_to({channel}, 'UTF8'::name)) as hash
        from (select unnest(seqs) as seq, unnest(keys) as key, unnest(data) as data) as u
        offset 0
    ) as m;
    return seqs;
end
$body$;
$template$
$function$;

create or replace function postbus_data.read_channel_template()
returns text
language sql
immutable
as $function$
/* The text of templates/read_channel.sql. */
    select $template$
-- Looks at the next messages of one channel. See channel_statement for the arguments.
with scanned as materialized (
    select
        l.seq,
        coalesce(l.expires_at <= $9, false) as is_expired,
        ($1.filter_key_regex is null or coalesce(l.key ~ $1.filter_key_regex, false))
        and ($1.filter_headers is null or coalesce(l.headers @> $1.filter_headers, false))
        and ($1.filter_headers_not is null or not coalesce(l.headers @> any ($1.filter_headers_not), false))
        and {matches_data} as matches
    from {log_table} as l
    where {channel} = $7
        and l.seq > $3
        and l.seq <= $4
    order by l.seq
    limit $5
),
taken as materialized (
    select s.seq from scanned as s where s.matches and not s.is_expired order by s.seq limit $6
),
edge as materialized (
    select
        case
            when (select count(*) from taken) = $6 then (select max(t.seq) from taken as t)
            when (select count(*) from scanned) < $5 then $4
            else (select max(s.seq) from scanned as s)
        end as seq
)
select
    (select array_agg(t.seq order by t.seq) from taken as t),
    null::text[],
    (select array_agg(s.seq order by s.seq) from scanned as s where s.matches and s.is_expired and s.seq <= e.seq),
    e.seq,
    (select count(*) from scanned) < $5 and not exists (select from scanned as s where s.seq > e.seq),
    (select count(*)::integer from scanned),
    null::text[],
    null::bigint[]
from edge as e
$template$
$function$;

create or replace function postbus_data.scan_channels_template()
returns text
language sql
immutable
as $function$
/* The text of templates/scan_channels.sql. */
    select $template$
-- Looks at new messages of a partition, and takes the first of each channel that has no turn waiting, as many as its limits and its quantum leave. See
-- channel_statement for the arguments.
with scanned as materialized (
    select
        l.seq,
        {channel} as channel,
        coalesce(l.expires_at <= $9, false) as is_expired,
        ($1.filter_key_regex is null or coalesce(l.key ~ $1.filter_key_regex, false))
        and ($1.filter_headers is null or coalesce(l.headers @> $1.filter_headers, false))
        and ($1.filter_headers_not is null or not coalesce(l.headers @> any ($1.filter_headers_not), false))
        and {matches_data} as matches
    from {log_table} as l
    where l.partition = $2
        and l.seq > $3
        and l.seq <= $4
    order by l.seq
    limit $5
),
flow as materialized (
    select s.channel, min(s.seq) as first_seq
    from scanned as s
    where s.matches
    group by s.channel
),
-- Those with a turn are passed over: they come when it is their turn.
fresh as materialized (
    select f.*
    from flow as f
    -- Not as a join, which might read all turns of the partition. Mostly there are none at all.
    where not exists (select from postbus_data.turn as t where t.consumer_id = $1.id and t.epoch = $1.epoch and t.partition = $2)
        or (
            select t.n
            from postbus_data.turn as t
            where t.consumer_id = $1.id
                and t.epoch = $1.epoch
                and t.partition = $2
                and t.channel = f.channel
            order by t.n desc
            limit 1
        ) is null
),
roomy as materialized (
    select r.channel, r.first_seq, coalesce((r.here).room, 2147483647) as room, case when $10 then (r.here).quantum else $11 end as quantum
    from (
        select f.channel, f.first_seq, case when $10 then postbus_data.channel_room($1, f.channel, $8, $11, $10, $9) end as here from fresh as f offset 0
    ) as r
),
ranked as materialized (
    select
        s.seq, s.channel, r.room, r.quantum, r.first_seq,
        row_number() over (partition by s.channel order by s.seq) <= least(r.room, r.quantum) as may_go
    from scanned as s
    join roomy as r on r.channel = s.channel
    where s.matches
        and not s.is_expired
),
taken as materialized (
    select r.seq, r.channel
    from ranked as r
    where r.may_go
    order by r.seq
    limit $6
),
edge as materialized (
    select
        case
            when (select count(*) from taken) = $6 then (select max(t.seq) from taken as t)
            when (select count(*) from scanned) < $5 then $4
            else (select max(s.seq) from scanned as s)
        end as seq
),
-- What is left of a channel that had as much as the lightest has in a turn, up to the edge or behind it, comes in turns; without a quantum only what had
-- to stay behind.
late as materialized (
    select r.channel, coalesce(max(r.seq) filter (where t.seq is not null), min(r.first_seq) - 1) as after_seq
    from ranked as r
    cross join edge as e
    left join taken as t on t.seq = r.seq
    group by r.channel
    having bool_or(not r.may_go and r.seq <= e.seq)
        or (
            count(t.seq) >= $11
            and (
                count(*) > count(t.seq)
                or exists (
                    select
                    from {log_table} as l
                    where {channel} = r.channel
                        and l.seq > max(r.seq)
                        and l.seq <= $4
                )
            )
        )
)
select
    (select array_agg(t.seq order by t.seq) from taken as t),
    (select array_agg(t.channel order by t.seq) from taken as t),
    (
        select array_agg(s.seq order by s.seq)
        from scanned as s
        join roomy as r on r.channel = s.channel
        where s.matches
            and s.is_expired
            and s.seq <= e.seq
            and not exists (select from late as t where t.channel = s.channel)
    ),
    e.seq,
    e.seq >= $4,
    (select count(*)::integer from scanned),
    (select array_agg(t.channel order by t.after_seq, t.channel) from late as t),
    (select array_agg(t.after_seq order by t.after_seq, t.channel) from late as t)
from edge as e
$template$
$function$;

insert into postbus_data.migration (number, name) values (1, 'install'), (2, 'faster_pipelines_and_counts'), (3, 'rights_by_functions'), (4, 'registers_that_a_crash_keeps'), (5, 'count_what_is_dropped'), (6, 'names_that_say_what_things_do'), (7, 'sweeps_and_redeliveries_apart'), (8, 'settings_from_one_list'), (9, 'pipelines_account_for_rows'), (10, 'creates_that_accept_what_exists'), (11, 'find_redeliveries_by_seq'), (12, 'a_backlog_that_is_counted'), (13, 'who_does_the_upkeep'), (14, 'late_acks_count'), (15, 'dead_letters_to'), (16, 'recurring_schedules'), (17, 'deferral'), (18, 'levels'), (19, 'sources'), (20, 'webhooks'), (21, 'tasks_in_the_background'), (22, 'sqs'), (23, 'channels') on conflict do nothing;
insert into postbus_data.installation (functions_digest) values ('f23eb3ef3c82defd')
on conflict (singleton) do update set functions_digest = excluded.functions_digest;
-- What every install and upgrade ends with.

-- The functions that are written for each stream and segment may have changed with their templates.
select postbus_data.create_publish_functions(s.id), postbus_data.create_receive_function(s.id), postbus_data.create_ack_function(s.id)
from postbus_data.stream as s;
select postbus_data.create_claim_function(g.stream_id, g.number, s.data_type)
from postbus_data.segment as g
join postbus_data.stream as s on s.id = g.stream_id;

-- Functions run with the rights of their owner, and only some of them may be called by everybody.
select postbus_data.own_objects(t.tableowner) from pg_catalog.pg_tables as t where t.schemaname = 'postbus_data' and t.tablename = 'stream';
select postbus_data.close_functions();
select postbus_data.apply_grants(s.id) from postbus_data.stream as s;

select postbus_data.comment_functions();
comment on table postbus_data.migration is 'A row is one numbered step that this database has taken, in a fresh install (which takes all of them at once) or an upgrade.';
comment on table postbus_data.installation is 'The one row has a digest of the functions'' text, so that the library can compare code and database when it connects.';
comment on table postbus_data.stream is 'A row is one stream, with its settings. check_stream has their ranges. Its sequences, functions and log tables have its id in their names.';
comment on table postbus_data.segment is 'A row is one table of a stream''s log. In its life a segment is prepared (its table exists, nobody writes to it), current (the layout register names it), rolled (the register has moved on, late publishers may still write) and sealed (nobody can write). At most one segment is rolled and not sealed, so a message''s seq lies in one of at most two segments.';
comment on table postbus_data.level is 'A row says that messages of a priority other than the default were published to a stream, none of them at or below since_seq. Publishers do not wait for each other, so several rows may say it of a priority; then the lowest that can be seen counts.';
comment on table postbus_data.kept is 'A row is a message whose segment was dropped while a consumer still held it: in flight, failed, or parked. It is deleted when no consumer holds it.';
comment on table postbus_data.dropped is 'A row counts what a dropped segment held: the messages of each partition. It tells a consumer that comes too late how many it has missed. When a stream has more than a hundred rows, the oldest two are merged.';
comment on table postbus_data.dedup is 'A row is a table of a stream''s message ids, postbus_data.dedup_<stream id>_<number>. New ids go to the table that the register dedup_<stream id> names. The one before it is still searched while it may hold ids within the window. Old tables are dropped, so ids are never deleted one by one.';
comment on table postbus_data.schedule is 'A row is a recurring schedule: a message that is published at the times of a cron expression, or of an interval. Whoever runs Python fills in the next times, as rows of scheduled; SQL publishes them. No process leads.';
comment on table postbus_data.scheduled is 'A row is a message that waits outside the log until its time: one row, however many consumers the stream has. When it is due it is published and gets its seq. The content is stored as given, already checked.';
comment on table postbus_data.schedule_run is 'A row is a message that a recurring schedule has published, by its time or on request (occurrence is null). The last twenty stay.';
comment on table postbus_data.consumer is 'A row is one consumer: a named reader of a stream. The tables below hold what it has read and what it holds, by its id.';
comment on table postbus_data.position is 'A row says how far a consumer has read a partition: up to read_to_seq. Insert-only: under the partition''s mutex, a claim inserts the next row and deletes the last one. A reader takes the right edge of the index, however many dead rows lie to the left of it.';
comment on table postbus_data.redelivery_position is 'A row says how far a consumer has read its redelivery log, the table due. Insert-only, like position.';
comment on table postbus_data.urgent_position is 'A row says how many of the urgent messages of its stream, by the sequence that counts them, a consumer has taken all of, up to which seq. Insert-only, like position.';
comment on table postbus_data.sweep_state is 'A row says up to which time a consumer''s expired leases and due retries were swept. Insert-only, like position.';
comment on table postbus_data.consumer_use is 'A row says when a consumer with expire_after was last used. Insert-only, like position.';
comment on table postbus_data.lease is 'A row is one delivery of a batch from one partition, until it is acked or nacked or the lease expires. It lists its messages; the table settled has those that are settled already.';
comment on table postbus_data.settled is 'A row is a message of a lease that was acked or nacked individually. It is inserted beside the lease and not updated into it, so that two workers that ack parts of a batch do not wait for each other, and an open ack does not block a heartbeat.';
comment on table postbus_data.waiting is 'A row is a message that failed (it was nacked, or its lease expired) and waits until it is due for redelivery.';
comment on table postbus_data.saved is 'A row is a message that was deferred, from its first deferral until the consumer has finished it.';
comment on table postbus_data.parked is 'A row is a message that, in order "key", was reached while its key was in flight or had failed, and waits behind it. Written and deleted only under the partition''s mutex, and read from position.parked_from on.';
comment on table postbus_data.due is 'A row is a message that is due for redelivery: the redelivery log, read by position like a stream. The sweeper numbers its rows under a mutex, so a reader misses no row that commits late.';
comment on table postbus_data.dead_letter is 'A row is a message that a consumer gave up, with a copy of it.';
comment on table postbus_data.history is 'A row is the outcome of a delivery: of a batch that was acked, or of one message that failed. Only for consumers with keep_history.';
comment on table postbus_data.group_worker is 'A row is a live worker of a group: one that has called join_group within its session.';
comment on table postbus_data.group_owner is 'A row says which worker of a group reads a partition.';
comment on table postbus_data.channel is 'A row limits the channels of a stream whose names match a pattern; see set_channel. Of several that match, the most specific counts.';
comment on table postbus_data.turn is 'A row says that a channel still has messages for a consumer above after_seq and up to the position of its partition, or retries that are due. There is at most one for each channel; it is written and deleted only under the partition''s mutex. A position passes over the channel''s messages while there is one.';
comment on table postbus_data.channel_position is 'A row says, beside the position of a partition, where a consumer by channel is with its turns. Insert-only, like position, by a number that grows with each claim: a position that does not move would be written again and again with the same key.';
comment on table postbus_data.channel_pace is 'A row says how far a channel with a rate has used it up for a consumer. Insert-only, like position. tat is the theoretical arrival time of GCRA: when the channel would be as fresh as if it had never been used.';
comment on table postbus_data.spark_staging is 'A row is up to 10,000 messages that one attempt of a Spark task wants to publish, until its batch commits or is given up. One row per message would have to be deleted one by one. Unlogged: if Postgres crashes and loses rows, the batch finds them missing when it is published, fails and is run again.';
comment on table postbus_data.spark_writer is 'A row is the last batch that a writer has published to a stream. Batch ids grow, so all lower ones are published too.';
comment on table postbus_data.pipeline is 'A row is one pipeline: a Spark job that reads or writes a stream, under the name by which a later run continues it.';
comment on table postbus_data.archive is 'A row is the archive of a stream: files in a lake that hold its messages from start_after (exclusive) to position_seq.';
comment on table postbus_data.archive_batch is 'A row is one step of an archive: in the transaction that wrote this row, every message with after_seq < seq <= to_seq was listed in files. Steps follow each other without a gap.';
comment on table postbus_data.archive_file is 'A row is a file of an archive. A file that is not listed here, or is marked as removed, does not count.';
comment on table postbus_data.archive_part is 'A row says what a file holds of a partition. The checksum covers its messages and does not depend on their order.';
comment on table postbus_data.ingest_file is 'A row is a file that a pipeline has taken, to publish its rows. The files of a step are read together and never change, so that another run of the step publishes the same messages.';
comment on table postbus_data.backfill_snapshot is 'A row is a snapshot of a source, at which one run of a backfill read its ranges.';
comment on table postbus_data.backfill_range is 'A row is a range of a backfill''s key: rows with after_key < key <= to_key in the order of the source. Ranges are decided when the backfill first begins, so every row of the source always belongs to one range.';
comment on table postbus_data.token is 'A row is a token that allows requests to the HTTP server. Only its SHA-256 is stored, not the token itself.';
comment on table postbus_data.stream_grant is 'A row allows a role to publish to a stream, to consume it or to read it; a null stream means all streams.';
comment on table postbus_data.caller_key is 'The one row is the secret with which this database signs the names of callers, and by which functions recognize them.';
comment on table postbus_data.push is 'A row is the endpoint of a push consumer: its messages are sent there as HTTP requests. Any number of processes send for it.';
comment on table postbus_data.push_secret is 'A row is a secret that the requests to an endpoint are signed with: the newest one, and older ones until they end.';
comment on table postbus_data.push_state is 'A row says how an endpoint does: the newest one counts. Insert-only, like position: under the endpoint''s mutex, a report inserts the next row and deletes the last one.';
comment on table postbus_data.push_test is 'A row is a test message that somebody has asked for and no process has sent yet.';
comment on table postbus_data.push_attempt is 'A row is an attempt to send a message, or a test. Days take turns in eight tables, so that nothing is deleted row by row: each is emptied before its next turn, and an attempt is kept for six days at least.';
comment on table postbus_data.push_attempt_0 is 'Attempts of every eighth day.';
comment on table postbus_data.push_attempt_1 is 'Attempts of every eighth day.';
comment on table postbus_data.push_attempt_2 is 'Attempts of every eighth day.';
comment on table postbus_data.push_attempt_3 is 'Attempts of every eighth day.';
comment on table postbus_data.push_attempt_4 is 'Attempts of every eighth day.';
comment on table postbus_data.push_attempt_5 is 'Attempts of every eighth day.';
comment on table postbus_data.push_attempt_6 is 'Attempts of every eighth day.';
comment on table postbus_data.push_attempt_7 is 'Attempts of every eighth day.';
comment on table postbus_data.webhook_source is 'A row is a webhook source: requests to /api/webhook/<name> become messages of a stream, once they are verified.';
comment on table postbus_data.webhook_refusal is 'A row is a request that a webhook source refused. The last fifty stay.';
comment on table postbus_data.upkeep is 'The one row says which process of the library does the upkeep, and when somebody last maintained the logs.';
comment on table postbus_data.source is 'A row is a Postgres source: tables of some database whose changes a process of the library publishes to a stream.';
comment on table postbus_data.source_position is 'A row says that all transactions which end at or before this place of the source''s log are published. Whoever publishes inserts the next row in the same transaction, and deletes the one before.';
comment on table postbus_data.source_status is 'A row is what the process that reads a source says about it, every second or two.';
comment on table postbus_data.source_table is 'A row is a table of a source, and how far its existing rows are published.';
comment on table postbus_data.task is 'A row is long work on a consumer that is done in steps, by whichever process does the upkeep: a redrive, a discard, a replay or a move.';
comment on table postbus_data.sqs_queue is 'A row is a queue for clients of SQS: a name for a consumer, whose messages they receive. They send to its stream.';

commit;

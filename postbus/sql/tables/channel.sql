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

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

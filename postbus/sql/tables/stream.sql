-- A row is one stream. Beside it stand, named by its id:
--   postbus_data.seq_<id>     the sequence that numbers its messages
--   postbus_data.layout_<id>  a sequence used as a register: which segment publishers write to and how keys map to partitions.
--                             Its value is read live, whatever the reader's snapshot (a table row would not be).
--   postbus_data.log_<id>_<n> its segments
--   postbus_data.publish_<id>, postbus_data.publish_many_<id>
--                             functions that publish to it; see functions/message/internal/create_publish_functions.sql
--   postbus_data.dedup_<id>   a register like layout_<id>, of the table that takes ids of messages: dedup_<id>_<n>. Only with a dedup_window
--   postbus_data.state_<id>   which version of each key is the present one. Only with one_message_per_key
--   postbus_data.serve_<id>   a function that receives from it; see functions/delivery/internal/create_receive_function.sql
-- Ids are never used again, so a name left behind by one stream cannot be mistaken for another's.
create table postbus_data.stream (
    -- Publishers' locks use 2^30 + id as their class; see functions/horizon/internal/publisher_lock_class.sql.
    id integer generated always as identity (maxvalue 536870911) primary key,
    name text collate "C" not null unique,
    data_type text collate "C" not null check (data_type in ('json', 'text', 'bytes')),
    max_message_bytes integer not null check (max_message_bytes between 1 and 268435456),
    -- The log rolls to a new segment when the newest one is this large or this old.
    segment_bytes bigint not null check (segment_bytes between 65536 and 1099511627776),
    segment_age interval not null check (segment_age between interval '1 second' and interval '3650 days'),
    -- What is kept; nulls set no bound. Older than retain_up_to goes; younger than retain_at_least stays, whatever else is said. until_acked lets
    -- go of what all consumers have finished. Beyond max_messages or max_storage the oldest go (evict) or new ones are refused (refuse).
    retain_up_to interval,
    retain_at_least interval,
    max_messages bigint,
    max_storage bigint,
    until_acked boolean not null default false,
    when_full text collate "C" not null default 'evict',
    -- A message whose id was published within this time is not published again; null does not look.
    dedup_window interval,
    -- Publishing a key replaces it: consumers get its latest version only. The same data again is ignored, unless process_unmodified.
    one_message_per_key boolean not null default false,
    process_unmodified boolean not null default false,
    -- New messages are refused until maintenance finds room.
    is_full boolean not null default false,
    -- Messages below this seq were purged; their segments are dropped when no live message is left in them.
    start_seq bigint not null default 0,
    -- Messages below this seq were removed by somebody, not by retention: nobody gets them again.
    purged_seq bigint not null default 0,
    -- Maintenance is asked to begin a new segment, so that a segment whose messages are all purged can be dropped.
    roll_due boolean not null default false,
    created_at timestamptz not null default clock_timestamp()
);

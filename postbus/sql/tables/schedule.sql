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
    primary key (stream_id, id)
);

-- To find the messages due next.
create index scheduled_due on postbus_data.scheduled (stream_id, deliver_at, id);

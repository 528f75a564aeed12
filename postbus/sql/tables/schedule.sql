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

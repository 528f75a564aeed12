-- Messages that are published again and again, by a cron expression or an interval.

create table postbus_data.schedule (
    id integer generated always as identity primary key,
    stream_id integer not null references postbus_data.stream on delete cascade,
    name text collate "C" not null,
    cron text,
    every interval,
    time_zone text not null,
    key text collate "C",
    data text,
    bytes bytea,
    headers jsonb,
    ttl interval,
    catch_up text collate "C" not null check (catch_up in ('latest', 'skip', 'all')),
    max_catch_up integer not null check (max_catch_up between 1 and 1000),
    paused boolean not null default false,
    created_at timestamptz not null default clock_timestamp(),
    version integer not null default 1,
    filled_until timestamptz not null,
    problem text,
    unique (stream_id, name)
);

alter table postbus_data.scheduled
    add column schedule_id integer references postbus_data.schedule on delete cascade,
    add column occurrence timestamptz;
create unique index scheduled_occurrence on postbus_data.scheduled (schedule_id, occurrence) where schedule_id is not null;

create table postbus_data.schedule_run (
    schedule_id integer not null references postbus_data.schedule on delete cascade,
    n bigint generated always as identity,
    occurrence timestamptz,
    published_at timestamptz not null default clock_timestamp(),
    seq bigint not null,
    primary key (schedule_id, n)
);

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
    last_runs jsonb
);

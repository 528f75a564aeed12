-- Redrives, discards and replays that go on in the background, with their progress.

create table postbus_data.task (
    id bigint generated always as identity primary key,
    consumer_id integer not null references postbus_data.consumer on delete cascade,
    kind text collate "C" not null check (kind in ('redrive', 'discard', 'replay')),

    key_pattern text collate "C",
    reason_like text collate "C",
    to_stream text collate "C",
    from_seq bigint,
    to_seq bigint,
    from_time timestamptz,
    to_time timestamptz,

    rate double precision check (rate > 0),
    state text collate "C" not null default 'running' check (state in ('running', 'done', 'cancelled', 'failed')),

    done_count bigint not null default 0,
    total_estimate bigint,

    resume text,
    last_error text,
    created_by text not null,
    created_at timestamptz not null default clock_timestamp(),

    noted_at timestamptz not null default clock_timestamp(),
    paced_at timestamptz not null default clock_timestamp(),
    ended_at timestamptz
);

create index task_running on postbus_data.task (id) where state = 'running';
create index task_consumer on postbus_data.task (consumer_id);

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

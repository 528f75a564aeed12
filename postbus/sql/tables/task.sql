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

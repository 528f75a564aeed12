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

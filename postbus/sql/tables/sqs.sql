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

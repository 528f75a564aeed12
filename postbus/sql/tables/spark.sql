-- A row is up to 10,000 messages that one attempt of a Spark task wants to publish, until its batch commits or is given up.
-- One row per message would have to be deleted one by one. Unlogged: if Postgres crashes and loses rows, the batch finds them
-- missing when it is published, fails and is run again.
create unlogged table postbus_data.spark_staging (
    -- A task that ran twice has two attempts; the batch names one of them.
    attempt uuid not null,
    chunk integer not null,
    -- The stream and the writer, as stream/writer: a writer may write to several streams.
    writer text collate "C" not null,
    batch_id bigint not null,
    message_count integer not null,
    -- Parallel arrays, as publish_many takes them. data is text data.
    keys text[],
    data text[],
    headers jsonb[],
    bytes bytea[],
    -- Null when no message has one.
    deliver_at timestamptz[],
    staged_at timestamptz not null default clock_timestamp(),
    -- JSON data.
    contents json[],
    -- The hash of each key, which decides its partition: see partition_of, which takes it modulo the partition count.
    hashes integer[],
    -- Instead of all these: rows of a segment in the format of COPY, and the stream for which they were checked.
    encoded_for integer,
    encoded bytea,
    -- Null when no message has one.
    priorities integer[],
    primary key (attempt, chunk)
);

-- Compressing them would take longer than writing them, and they are deleted at once.
alter table postbus_data.spark_staging
    alter column keys set storage external,
    alter column data set storage external,
    alter column headers set storage external,
    alter column bytes set storage external,
    alter column contents set storage external,
    alter column hashes set storage external,
    alter column encoded set storage external,
    alter column priorities set storage external;

-- To find leftovers of earlier batches of a writer.
create index spark_staging_writer on postbus_data.spark_staging (writer, batch_id);

-- A row is the last batch that a writer has published to a stream. Batch ids grow, so all lower ones are published too.
create table postbus_data.spark_writer (
    stream_id integer not null references postbus_data.stream on delete cascade,
    writer text collate "C" not null,
    -- The streaming query whose batches are counted; null for a writer of batches.
    query text,
    batch_id bigint not null,
    -- The name was generated for one batch and will not be used again.
    is_once boolean not null,
    message_count bigint not null,
    published_at timestamptz not null default clock_timestamp(),
    -- Of all its batches.
    total_count bigint not null default 0,
    primary key (stream_id, writer)
);

-- To find writers that will not be used again.
create index spark_writer_once on postbus_data.spark_writer (published_at) where is_once;

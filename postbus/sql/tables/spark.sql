-- A row is up to 10,000 messages that one attempt at a task of Spark wants to publish, until its batch commits or is given up. A row for each
-- message would have to be deleted again one by one.
-- Unlogged: rows that a crash of Postgres takes away are missed when the batch is published, which then fails and is run again.
create unlogged table postbus_data.spark_staging (
    -- A task that was run twice has two attempts, of which the batch names one.
    attempt uuid not null,
    chunk integer not null,
    -- The stream and the writer, as stream/writer: one may write to several streams.
    writer text collate "C" not null,
    batch_id bigint not null,
    message_count integer not null,
    -- Side by side, as publish_many takes them; data of text.
    keys text[],
    data text[],
    headers jsonb[],
    bytes bytea[],
    -- Null when no message has one.
    deliver_at timestamptz[],
    staged_at timestamptz not null default clock_timestamp(),
    -- Data of JSON.
    contents json[],
    -- What decides on the partition of each key: see partition_of, which takes it modulo their number.
    hashes integer[],
    -- Instead of all these: rows of a segment as COPY takes them, and the stream that they were checked for.
    encoded_for integer,
    encoded bytea,
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
    alter column encoded set storage external;

-- What is left of earlier batches of a writer.
create index spark_staging_writer on postbus_data.spark_staging (writer, batch_id);

-- A row says which batch of a writer was published last to a stream. Batch ids grow, so lower ones were published too.
create table postbus_data.spark_writer (
    stream_id integer not null references postbus_data.stream on delete cascade,
    writer text collate "C" not null,
    -- The streaming query whose batches are counted; null for a writer of batches.
    query text,
    batch_id bigint not null,
    -- The name was made up for one batch and will not come again.
    is_once boolean not null,
    message_count bigint not null,
    published_at timestamptz not null default clock_timestamp(),
    primary key (stream_id, writer)
);

-- Rows of writers that will not come again.
create index spark_writer_once on postbus_data.spark_writer (published_at) where is_once;

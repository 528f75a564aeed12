-- A row is a file that a pipeline has taken, to publish its rows. The files of a step are read together and never change, so
-- that another run of the step publishes the same messages.
create table postbus_data.ingest_file (
    pipeline text collate "C" not null references postbus_data.pipeline on delete cascade,
    -- The Spark writer under which the steps are published, and the number of the step.
    writer text collate "C" not null,
    step bigint not null,
    path text collate "C" not null,
    -- As they were when the file was taken.
    bytes bigint not null,
    modified_at timestamptz not null,
    taken_at timestamptz not null default clock_timestamp(),
    done_at timestamptz,
    -- It was deleted before it was read.
    is_gone boolean not null default false,
    -- When it was first seen with another size or time. The new content is not read.
    changed_at timestamptz,
    primary key (writer, path)
);

-- The files of a step.
create index ingest_file_step on postbus_data.ingest_file (writer, step);

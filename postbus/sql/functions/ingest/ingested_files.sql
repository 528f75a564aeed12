create or replace function postbus.ingested_files(pipeline text)
returns table (path text, bytes bigint, modified_at timestamptz, state text, step bigint, taken_at timestamptz, done_at timestamptz, changed_at timestamptz)
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
The files that a pipeline has taken, in the order in which it reads them.

bytes, modified_at  as they were when the file was taken.
state               taken (still to be read, or being read), done, gone (deleted before it was read), or changed (its size or
                    time has changed since it was done; the new content is not read).

Returns  a row for each file of the pipeline's latest plan; none for an unknown pipeline.
*/
    select
        i.path,
        i.bytes,
        i.modified_at,
        case
            when i.done_at is null then 'taken'
            when i.is_gone then 'gone'
            when i.changed_at is not null then 'changed'
            else 'done'
        end,
        i.step,
        i.taken_at,
        i.done_at,
        i.changed_at
    from postbus_data.ingest_file as i
    where i.pipeline = ingested_files.pipeline
        and i.writer = (select p.plan ->> 'writer' from postbus_data.pipeline as p where p.name = ingested_files.pipeline)
    order by i.step, i.modified_at, i.path
$$;

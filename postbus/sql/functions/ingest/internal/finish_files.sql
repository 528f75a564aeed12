create or replace function postbus_data.finish_files(pipeline text, run uuid, writer text, step bigint, gone text[])
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
/*
Record that a step of a pipeline is done: the rows of its files are published, or rejected to the side stream. Files that are
gone were not read.

Raises   PB409 when another run has replaced this one.
Locks    the pipeline's row.
*/
begin
    perform postbus_data.hold_pipeline(finish_files.pipeline, finish_files.run);
    update postbus_data.ingest_file as i
    set done_at = clock_timestamp(),
        is_gone = i.path = any (gone)
    where i.writer = finish_files.writer
        and i.step = finish_files.step
        and i.done_at is null;
end
$$;

create or replace function postbus_data.take_files(
    pipeline text,
    run uuid,
    writer text,
    files jsonb,
    most_files integer,
    most_bytes bigint
)
returns table (step bigint, path text, is_there boolean)
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
/*
The files of a pipeline's next step. If a step was begun and is not done, it is that one; otherwise take the oldest files never
taken.

files                   the files that exist now: [{"path", "bytes", "modified_at"}].
most_files, most_bytes  limits of a new step. A larger file has a step of its own.

Returns  no row when there is nothing to do.
Raises   PB409 when another run has replaced this one.
Touches  ingest_file (insert; update of files that have changed).
Locks    the pipeline's row, so that two runs cannot both take files.
*/
#variable_conflict use_column
declare
    next_step bigint;
begin
    perform postbus_data.hold_pipeline(take_files.pipeline, take_files.run);
    update postbus_data.ingest_file as i
    set changed_at = clock_timestamp()
    from jsonb_to_recordset(files) as f (path text, bytes bigint, modified_at timestamptz)
    where i.writer = take_files.writer
        and i.path = f.path
        and i.changed_at is null
        and (i.bytes, i.modified_at) is distinct from (f.bytes, f.modified_at);

    next_step := (
        select min(i.step) from postbus_data.ingest_file as i where i.writer = take_files.writer and i.done_at is null
    );
    if next_step is null then
        next_step := (
            select coalesce(max(i.step) + 1, 0) from postbus_data.ingest_file as i where i.writer = take_files.writer
        );
        insert into postbus_data.ingest_file (pipeline, writer, step, path, bytes, modified_at)
        select take_files.pipeline, take_files.writer, next_step, n.path, n.bytes, n.modified_at
        from (
            select
                f.*,
                row_number() over oldest_first as place,
                sum(f.bytes) over oldest_first as bytes_so_far
            from jsonb_to_recordset(files) as f (path text, bytes bigint, modified_at timestamptz)
            where not exists (
                select
                from postbus_data.ingest_file as i
                where i.writer = take_files.writer
                    and i.path = f.path
            )
            window oldest_first as (order by f.modified_at, f.path)
        ) as n
        where n.place <= most_files
            and (n.place = 1 or n.bytes_so_far <= most_bytes);
    end if;
    return query
    select i.step, i.path, f.path is not null
    from postbus_data.ingest_file as i
    left join jsonb_to_recordset(files) as f (path text) on f.path = i.path
    where i.writer = take_files.writer
        and i.step = next_step
    order by i.modified_at, i.path;
end
$$;

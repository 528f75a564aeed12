create or replace function postbus_data.forget_files(stream text, ids bigint[])
returns void
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
/* Forget files of an archive that were deleted. Files that still count stay. Raises PB404 for an unknown stream. */
    delete from postbus_data.archive_file as f
    where f.stream_id = postbus_data.stream_id(stream)
        and f.id = any (ids)
        and f.removed_at is not null
$$;

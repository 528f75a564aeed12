create or replace function postbus_data.archive_folders(stream text)
returns setof text
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
/* The folders below an archive's folder that have, or had, files of the archive. Raises PB404 for an unknown stream. */
    select distinct split_part(f.path, '/', 1)
    from postbus_data.archive_file as f
    where f.stream_id = postbus_data.stream_id(stream)
$$;

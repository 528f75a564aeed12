create or replace function postbus_data.removed_files(stream text, before timestamptz)
returns table (id bigint, path text)
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
/*
The files of an archive that stopped counting before a time, so that they can be deleted. Raises PB404 for an unknown stream.
*/
    select f.id, f.path
    from postbus_data.archive_file as f
    where f.stream_id = postbus_data.stream_id(stream)
        and f.removed_at < before
    order by f.id
$$;

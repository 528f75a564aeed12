create or replace function postbus_data.move_archive(stream text, root text)
returns void
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
/* Say that the files of an archive lie in another folder now. */
    update postbus_data.archive as a set root = move_archive.root where a.stream_id = postbus_data.stream_id(stream)
$$;

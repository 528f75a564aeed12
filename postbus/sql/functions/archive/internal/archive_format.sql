create or replace function postbus_data.archive_format(stream text)
returns text
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
/* The format of an archive: parquet, or delta when its folder is also a Delta table. Null without an archive. Raises PB404. */
    select a.format from postbus_data.archive as a where a.stream_id = postbus_data.stream_id(stream)
$$;

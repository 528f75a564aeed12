create or replace function postbus_data.archive_parts(stream text)
returns table (path text, partition integer, first_seq bigint, last_seq bigint, message_count bigint, checksum bigint)
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
/* What each file of an archive holds of each partition. Raises PB404. */
    select f.path, p.partition, p.first_seq, p.last_seq, p.message_count, p.checksum
    from postbus_data.archive_file as f
    join postbus_data.archive_part as p on p.file_id = f.id
    where f.stream_id = postbus_data.stream_id(stream)
        and f.removed_at is null
    order by f.first_seq, f.id, p.partition
$$;

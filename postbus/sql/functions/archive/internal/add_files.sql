create or replace function postbus_data.add_files(stream_id integer, files jsonb)
returns bigint
language plpgsql
volatile
as $$
/*
List files of an archive.

files    an array of objects: path, bytes, first_published_at, last_published_at, and parts, an array of objects that are rows
         of archive_part.

Returns  how many messages the files hold.
Touches  archive_file, archive_part (insert).
*/
declare
    file jsonb;
    new_id bigint;
    total bigint := 0;
    counted bigint;
begin
    for file in select f.value from jsonb_array_elements(files) as f loop
        insert into postbus_data.archive_file as f (
            stream_id, path, bytes, message_count, first_seq, last_seq, first_published_at, last_published_at
        )
        select
            add_files.stream_id,
            file ->> 'path',
            (file ->> 'bytes')::bigint,
            sum(p.message_count),
            min(p.first_seq),
            max(p.last_seq),
            (file ->> 'first_published_at')::timestamptz,
            (file ->> 'last_published_at')::timestamptz
        from jsonb_populate_recordset(null::postbus_data.archive_part, file -> 'parts') as p
        returning f.id, f.message_count into new_id, counted;
        insert into postbus_data.archive_part (file_id, partition, first_seq, last_seq, message_count, checksum)
        select new_id, p.partition, p.first_seq, p.last_seq, p.message_count, p.checksum
        from jsonb_populate_recordset(null::postbus_data.archive_part, file -> 'parts') as p;
        total := total + counted;
    end loop;
    return total;
end
$$;

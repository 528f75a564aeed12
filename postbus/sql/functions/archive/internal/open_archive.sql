create or replace function postbus_data.open_archive(stream text, root text, consumer text, format text default 'parquet')
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
/*
Create the archive of a stream, from its oldest message on, unless it has one. The archive's consumer makes the stream keep what
is not archived yet.

format   delta makes the folder a Delta table too; an archive that is one stays one.

Raises   PB404 for an unknown stream, PB409 when the archive is in another folder.
*/
declare
    found_id integer := postbus_data.stream_id(stream);
    first_kept bigint := (select s.start_seq from postbus_data.stream as s where s.id = found_id);
    known text;
begin
    insert into postbus_data.archive (stream_id, root, start_after, position_seq)
    values (found_id, root, greatest(first_kept - 1, 0), greatest(first_kept - 1, 0))
    on conflict do nothing;
    select a.root into known from postbus_data.archive as a where a.stream_id = found_id;
    if known <> root then
        raise exception using
            errcode = 'PB409',
            message = format('the archive of stream "%s" is in %s, not in %s', stream, known, root),
            hint = 'archive to that folder';
    end if;
    if open_archive.format <> 'parquet' then
        update postbus_data.archive as a set format = open_archive.format where a.stream_id = found_id;
    end if;
    if exists (select from postbus_data.consumer as c where c.stream_name = stream and c.name = consumer) then
        perform postbus.alter_consumer(stream, consumer, keep_unread => true);
    else
        perform postbus.create_consumer(stream, consumer, keep_unread => true);
    end if;
end
$$;

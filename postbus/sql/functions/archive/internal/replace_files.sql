create or replace function postbus_data.replace_files(stream text, old_ids bigint[], files jsonb)
returns bigint
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
/*
Replace files of an archive by others that hold the same messages. Readers that began earlier may still read the old files.

Returns  how many messages the new files hold.
Raises   PB404 for an unknown stream, PB409 when an old file is no longer listed, or the new files do not hold the same messages.
Touches  archive_file (insert, update), archive_part (insert).
Locks    the archive's row, so that steps, compaction and retention exclude each other.
*/
declare
    found_id integer := postbus_data.stream_id(stream);
    last_id bigint;
    replaced bigint;
    total bigint;
begin
    perform from postbus_data.archive as a where a.stream_id = found_id for update;
    last_id := (select coalesce(max(f.id), 0) from postbus_data.archive_file as f);
    update postbus_data.archive_file as f
    set removed_at = clock_timestamp()
    where f.stream_id = found_id
        and f.id = any (old_ids)
        and f.removed_at is null;
    get diagnostics replaced = row_count;
    if replaced <> cardinality(old_ids) then
        raise exception using
            errcode = 'PB409',
            message = format('%s of %s files of the archive of "%s" are no longer listed', cardinality(old_ids) - replaced, cardinality(old_ids), stream),
            hint = 'another run has replaced them; nothing was changed';
    end if;
    total := postbus_data.add_files(found_id, files);
    if exists (
        select
        from (
            select
                p.partition,
                sum(case when f.id > last_id then p.message_count else -p.message_count end) as difference,
                bit_xor(p.checksum) as checksum
            from postbus_data.archive_file as f
            join postbus_data.archive_part as p on p.file_id = f.id
            where f.stream_id = found_id
                and (f.id > last_id or f.id = any (old_ids))
            group by p.partition
        ) as p
        where p.difference <> 0
            or p.checksum <> 0
    ) then
        raise exception using
            errcode = 'PB409',
            message = format('new files of the archive of "%s" do not hold what the old ones did', stream),
            hint = 'nothing was changed; check it with: postbus pipeline run archive STREAM --verify';
    end if;
    return total;
end
$$;

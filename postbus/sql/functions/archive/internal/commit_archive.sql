create or replace function postbus_data.commit_archive(
    stream text,
    consumer text,
    after_seq bigint,
    to_seq bigint,
    files jsonb,
    is_lost boolean
)
returns bigint
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
/*
Commit the next step of an archive: list the files that hold after_seq < seq <= to_seq, and allow retention to drop these
messages.

is_lost  the messages were purged before they could be archived, and there are no files.

Returns  how many messages the step holds.
Raises   PB404 for an unknown stream, PB409 when another run has committed this step, or the files do not hold as many messages
         as the log.
Touches  archive (update), archive_batch, archive_file, archive_part (insert), the consumer's position.
Locks    the archive's row, so that only one of two runs commits the step.
*/
declare
    found_id integer := postbus_data.stream_id(stream);
    known bigint;
    archived bigint;
    logged bigint;
begin
    select a.position_seq into known from postbus_data.archive as a where a.stream_id = found_id for update;
    if known is distinct from after_seq then
        raise exception using
            errcode = 'PB409',
            message = format('the archive of stream "%s" is at seq %s, not at %s: another run is active', stream, known, after_seq),
            hint = 'run one at a time; nothing was lost or duplicated';
    end if;
    archived := postbus_data.add_files(found_id, files);
    logged := case when is_lost then 0 else postbus_data.count_range(found_id, after_seq, to_seq) end;
    if archived <> logged then
        raise exception using
            errcode = 'PB409',
            message = format(
                'the files hold %s messages from seq %s to %s, and the log of stream "%s" %s', archived, after_seq + 1, to_seq, stream, logged
            ),
            hint = 'nothing was archived; run it again';
    end if;
    insert into postbus_data.archive_batch (stream_id, after_seq, to_seq, message_count, is_lost)
    values (found_id, after_seq, to_seq, archived, is_lost);
    update postbus_data.archive as a set position_seq = to_seq where a.stream_id = found_id;
    perform postbus_data.spark_commit(stream, consumer, to_seq);
    return archived;
end
$$;

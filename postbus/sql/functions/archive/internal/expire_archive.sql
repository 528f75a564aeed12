create or replace function postbus_data.expire_archive(stream text, before timestamptz)
returns bigint
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
/*
Remove the oldest steps of an archive whose messages were all published before a time. Only whole steps are removed, and no file
is rewritten.

Returns  how many messages were removed.
Raises   PB404 for an unknown stream.
Touches  archive (update), archive_file (update).
Locks    the archive's row.
*/
declare
    known postbus_data.archive;
    edge bigint;
    gone bigint;
begin
    select a.* into known from postbus_data.archive as a where a.stream_id = postbus_data.stream_id(stream) for update;
    select max(b.to_seq)
    into edge
    from postbus_data.archive_batch as b
    where b.stream_id = known.stream_id
        and b.to_seq > known.start_after
        -- Steps and files that also hold later messages.
        and not exists (
            select
            from postbus_data.archive_file as f
            where f.stream_id = known.stream_id
                and f.removed_at is null
                and f.first_seq <= b.to_seq
                and (f.last_published_at >= before or f.last_seq > b.to_seq)
        );
    if edge is null then
        return 0;
    end if;
    update postbus_data.archive as a set start_after = edge where a.stream_id = known.stream_id;
    with removed as (
        update postbus_data.archive_file as f
        set removed_at = clock_timestamp()
        where f.stream_id = known.stream_id
            and f.removed_at is null
            and f.last_seq <= edge
        returning f.message_count
    )
    select coalesce(sum(r.message_count), 0) into gone from removed as r;
    return gone;
end
$$;

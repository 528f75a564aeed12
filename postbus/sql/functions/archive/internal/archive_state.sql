create or replace function postbus_data.archive_state(
    stream text,
    out root text,
    out start_after bigint,
    out position_seq bigint,
    out file_count bigint,
    out message_count bigint,
    out bytes bigint
)
returns setof record
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
/*
The archive of a stream, which holds messages above start_after, up to position_seq. No row without an archive. Raises PB404.
*/
    select a.root, a.start_after, a.position_seq, count(f.id), coalesce(sum(f.message_count), 0)::bigint, coalesce(sum(f.bytes), 0)::bigint
    from postbus_data.archive as a
    left join postbus_data.archive_file as f on f.stream_id = a.stream_id and f.removed_at is null
    where a.stream_id = postbus_data.stream_id(stream)
    group by a.stream_id
$$;

create or replace function postbus_data.archive_files(
    stream text,
    after_seq bigint,
    to_seq bigint,
    from_time timestamptz default null,
    to_time timestamptz default null
)
returns table (
    id bigint,
    path text,
    bytes bigint,
    message_count bigint,
    first_seq bigint,
    last_seq bigint,
    first_published_at timestamptz,
    last_published_at timestamptz
)
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
/*
The files of an archive that may hold messages with after_seq < seq <= to_seq and from_time <= published_at < to_time, in order.

Raises   PB404 for an unknown stream.
*/
    select
        f.id, f.path, f.bytes, f.message_count, f.first_seq, f.last_seq, f.first_published_at, f.last_published_at
    from postbus_data.archive_file as f
    where f.stream_id = postbus_data.stream_id(stream)
        and f.removed_at is null
        and f.last_seq > after_seq
        and f.first_seq <= to_seq
        and (from_time is null or f.last_published_at >= from_time)
        and (to_time is null or f.first_published_at < to_time)
    order by f.first_seq, f.id
$$;

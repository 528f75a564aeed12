create or replace function postbus_data.archive_start(stream text, after_seq bigint, since timestamptz default null)
returns bigint
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
/*
The seq after which an archive's next message lies, above after_seq and not before a time; there is none in between. Null when
the archive has no such message.

Raises   PB404 for an unknown stream.
*/
    select greatest(min(f.first_seq) - 1, after_seq)
    from postbus_data.archive_file as f
    where f.stream_id = postbus_data.stream_id(stream)
        and f.removed_at is null
        and f.last_seq > after_seq
        and (since is null or f.last_published_at >= since)
$$;

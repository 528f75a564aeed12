create or replace function postbus_data.archive_steps(
    stream text,
    out message_count bigint,
    out lost_count bigint,
    out gap_after bigint
)
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
/*
A summary of an archive's steps: how many messages they hold, how many steps found their messages purged, and the first seq
after which a step is missing (null when none is).

Raises   PB404 for an unknown stream.
*/
    select
        coalesce(sum(b.message_count), 0)::bigint,
        count(*) filter (where b.is_lost),
        min(b.before) filter (where b.before <> b.after_seq)
    from (
        select
            b.*,
            lag(b.to_seq, 1, a.start_after) over (order by b.to_seq) as before
        from postbus_data.archive as a
        join postbus_data.archive_batch as b on b.stream_id = a.stream_id
        where a.stream_id = postbus_data.stream_id(stream)
            and b.to_seq > a.start_after
    ) as b
$$;

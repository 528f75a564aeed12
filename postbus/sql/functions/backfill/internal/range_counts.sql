create or replace function postbus_data.range_counts(writer text)
returns table (message_count bigint, bad_count bigint, open_numbers bigint[])
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
/*
The progress of a backfill: messages and rejected rows of the finished ranges, and the numbers of the others; null without ranges.
*/
    select
        coalesce(sum(r.message_count), 0)::bigint,
        coalesce(sum(r.bad_count), 0)::bigint,
        array_agg(r.number::bigint order by r.number) filter (where r.done_at is null)
    from postbus_data.backfill_range as r
    where r.writer = range_counts.writer
$$;

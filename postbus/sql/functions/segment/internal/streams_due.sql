create or replace function postbus_data.streams_due(only_id integer)
returns setof integer
language sql
volatile
as $$
/*
The streams that need maintenance, or only the given one if it does. Takes no lasting locks, however many streams there are:
sizes and ages come from the catalog and from the newest segment's row.
*/
    select s.id
    from postbus_data.stream as s
    cross join lateral (
        select
            max(g.number) as newest,
            count(*) filter (where g.sealed_at is null) as open_count,
            bool_or(g.last_seq < s.start_seq) as has_purged,
            max(g.prepared_at) as begun_at
        from postbus_data.segment as g
        where g.stream_id = s.id
    ) as g
    cross join lateral (
        -- Nothing while the heap is empty: an index has a page from the start.
        select case
            when pg_relation_size(log.name) > 0 then pg_total_relation_size(log.name)
            else 0
        end as bytes
        from (select to_regclass(postbus_data.log_table(s.id, g.newest)) as name) as log
    ) as log
    where (only_id is null or s.id = only_id)
        and (
            only_id is not null
            or g.open_count > 1
            or g.has_purged
            or s.roll_due
            or postbus_data.levels_are_stale(s.id)
            or s.one_message_per_key and g.newest > 1
            or exists (select from postbus_data.kept as k where k.stream_id = s.id)
            or exists (
                select
                from postbus_data.dedup as d
                where d.stream_id = s.id
                    and (d.begun_at is null or d.begun_at not between clock_timestamp() - s.dedup_window and clock_timestamp())
            )
            or pg_sequence_last_value(to_regclass('postbus_data.dedup_' || s.id))
                > coalesce((select max(d.number) from postbus_data.dedup as d where d.stream_id = s.id), 0)
            or exists (
                select
                from postbus_data.consumer as c
                where c.stream_id = s.id
                    and num_nonnulls(c.expire_after, c.keep_history) > 0
            )
            or log.bytes >= postbus_data.roll_bytes(s)
            or (log.bytes > 0 and g.begun_at not between clock_timestamp() - postbus_data.roll_age(s) and clock_timestamp() + interval '1 minute')
            or (log.bytes > 0 or s.is_full or g.newest > 1) and (num_nonnulls(s.retain_up_to, s.max_messages, s.max_storage) > 0 or s.until_acked)
        )
    -- In no order, so that streams that cannot proceed do not starve the others.
    order by random()
$$;

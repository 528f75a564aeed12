create or replace function postbus.overview(
    after_name text default '',
    max_streams integer default 500,
    sizes boolean default false,
    caller postbus.caller default postbus.current_caller()
)
returns table (
    name text,
    start_seq bigint,
    last_seq bigint,
    is_full boolean,
    until_acked boolean,
    consumer_count bigint,
    message_estimate bigint,
    bytes bigint
)
language sql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
A page of streams with their current figures, in order of their names, at most max_streams after after_name. For monitoring that
asks often: far cheaper than list_streams. Only streams on which the caller has a right.

sizes    also return message_estimate and bytes, which are null otherwise: it examines the files of each segment.
*/
    select
        s.name, s.start_seq, pg_sequence_last_value(to_regclass('postbus_data.seq_' || s.id)), s.is_full, s.until_acked,
        (select count(*) from postbus_data.consumer as c where c.stream_id = s.id),
        case when sizes then held.message_estimate end,
        case when sizes then held.bytes end
    from postbus_data.stream as s
    left join lateral (
        select
            coalesce(sum(pg_stat_get_live_tuples(t.log)), 0)::bigint as message_estimate,
            coalesce(sum(pg_total_relation_size(t.log)), 0)::bigint as bytes
        from (
            select to_regclass(format('postbus_data.log_%s_%s', g.stream_id, g.number)) as log
            from postbus_data.segment as g
            -- Here, and not in the join, so that nothing is examined without sizes.
            where sizes
                and g.stream_id = s.id
        ) as t
    ) as held on true
    where s.name > after_name
        and postbus_data.has_right(caller, s.id, 'publish', 'consume', 'read')
    order by s.name
    limit max_streams
$$;

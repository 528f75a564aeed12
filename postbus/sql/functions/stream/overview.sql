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
    bytes bigint,
    scheduled bigint,
    next_scheduled_at timestamptz
)
language sql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
A page of streams with their current figures, in order of their names, at most max_streams after after_name. For monitoring that
asks often: far cheaper than list_streams. Only streams on which the caller has a right.

sizes    also return message_estimate, bytes, scheduled and next_scheduled_at, which are null otherwise: it counts messages, and examines
         the files of each segment. See stream_info for what they mean.
*/
    select
        s.name, s.start_seq, pg_sequence_last_value(to_regclass('postbus_data.seq_' || s.id)), s.is_full, s.until_acked,
        (select count(*) from postbus_data.consumer as c where c.stream_id = s.id),
        held.message_count, held.bytes, later.scheduled, later.next_scheduled_at
    from (
        select s.*
        from postbus_data.stream as s
        where s.name > after_name
            and postbus_data.has_right(caller, s.id, 'publish', 'consume', 'read')
        order by s.name
        limit max_streams
    ) as s
    -- Without sizes nothing is examined: the function is strict, and the condition below is not one of the join.
    left join lateral postbus_data.count_held(case when sizes then s.id end) as held on true
    left join lateral (
        select count(*) as scheduled, min(m.deliver_at) as next_scheduled_at
        from (
            select m.deliver_at
            from postbus_data.scheduled as m
            where sizes
                and m.stream_id = s.id
                and m.schedule_id is null
            order by m.deliver_at
            limit 10000
        ) as m
        having sizes
    ) as later on true
    order by s.name
$$;

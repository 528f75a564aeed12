create or replace function postbus_data.next_turn_at(reader postbus_data.consumer, now_at timestamptz)
returns timestamptz
language sql
volatile
as $$
/* When the rate of a channel next lets it go on; null if none rests until a time. */
    select min(t.ready_at)
    from generate_series(reader.partition_base, reader.partition_base + reader.partition_count - 1) as p (n)
    cross join lateral (
        select t.ready_at
        from postbus_data.turn as t
        where t.consumer_id + 0 = reader.id
            and t.epoch = reader.epoch
            and t.partition = p.n
            and t.ready_at > now_at
            and t.ready_at < 'infinity'
        order by t.ready_at
        limit 1
    ) as t
$$;

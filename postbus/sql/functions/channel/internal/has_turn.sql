create or replace function postbus_data.has_turn(reader postbus_data.consumer)
returns boolean
language sql
volatile
as $$
/*
Whether a channel may have a turn: one waits for it, one rests until a message in flight is finished (which may have happened), one has rested long enough, or
retries have come due.
*/
    select exists (
        select
        from generate_series(reader.partition_base, reader.partition_base + reader.partition_count - 1) as p (n)
        cross join lateral postbus_data.channel_position_of(reader, p.n) as state
        where exists (
                select
                from postbus_data.turn as t
                where t.consumer_id + 0 = reader.id
                    and t.epoch = reader.epoch
                    and t.partition = p.n
                    and t.ready_at is null
                    and t.n > state.turned_to
            )
            or exists (
                select
                from postbus_data.turn as t
                where t.consumer_id + 0 = reader.id
                    and t.epoch = reader.epoch
                    and t.partition = p.n
                    and t.ready_at = '-infinity'
            )
            or exists (
                select
                from postbus_data.turn as t
                where t.consumer_id + 0 = reader.id
                    and t.epoch = reader.epoch
                    and t.partition = p.n
                    and t.ready_at > state.rested_to
                    and t.ready_at <= clock_timestamp()
            )
            or postbus_data.has_due(reader.id, reader.epoch, postbus_data.channel_lane(p.n))
    )
$$;

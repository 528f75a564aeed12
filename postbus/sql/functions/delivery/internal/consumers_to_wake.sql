create or replace function postbus_data.consumers_to_wake(
    consumer_ids bigint[],
    caller postbus.caller default postbus.current_caller()
)
returns table (wake boolean, next_seconds double precision)
language plpgsql
volatile
security definer
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
set search_path = pg_catalog, pg_temp
as $$
/*
For each of several waiting consumers, in their order: whether it may have something to receive other than new messages.
Read-only.

A consumer is awake if it has expired leases, due retries or scheduled messages; if an ack may free capacity at any moment (in
an order other than none, or with a small max_ack_pending, while something is in flight); if a channel may have a turn; or if it may move to another layout. A
dropped consumer is awake, so that its receiver gets the error.

next_seconds  how long until the next lease, retry or scheduled message is due, or the rate of a channel lets it go on; null if none is known.
*/
declare
    reader postbus_data.consumer;
    now_at timestamptz := clock_timestamp();
    from_time timestamptz;
    next_at timestamptz;
    scheduled_at timestamptz;
begin
    for place in 1 .. coalesce(cardinality(consumer_ids), 0) loop
        wake := true;
        next_seconds := null;
        select c.* into reader from postbus_data.consumer as c where c.id = consumer_ids[place];
        if postbus_data.has_right(caller, reader.stream_id, 'consume') then
            from_time := (postbus_data.sweep_state_of(reader)).swept_to - interval '5 seconds';
            if from_time > now_at then
                -- The clock was set back.
                from_time := '-infinity';
            end if;
            next_at := least(
                (
                    select l.deadline
                    from postbus_data.lease as l
                    where l.consumer_id = reader.id
                        and l.deadline > from_time
                    order by l.deadline
                    limit 1
                ),
                (
                    select w.due_at
                    from postbus_data.waiting as w
                    where w.consumer_id + 0 = reader.id
                        and w.due_at > from_time
                    order by w.due_at
                    limit 1
                )
            );
            scheduled_at := (
                select s.deliver_at
                from postbus_data.scheduled as s
                where s.stream_id = reader.stream_id
                order by s.deliver_at
                limit 1
            );
            wake := next_at <= now_at or scheduled_at <= now_at or exists (select from unnest(postbus_data.lanes(reader.stream_id)) as lane where postbus_data.has_due(reader.id, reader.epoch, lane))
                or postbus_data.is_behind(reader)
                or (next_at is not null and (reader.ordering <> 'none' or reader.max_ack_pending < 1000));
            if reader.by_channel then
                wake := wake or postbus_data.has_turn(reader);
                next_at := least(next_at, postbus_data.next_turn_at(reader, now_at));
            end if;
            next_seconds := extract(epoch from least(next_at, scheduled_at) - now_at);
        end if;
        wake := coalesce(wake, false);
        return next;
    end loop;
end
$$;

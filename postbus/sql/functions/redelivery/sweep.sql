create or replace function postbus.sweep(stream text default null)
returns integer
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Redeliver messages whose lease has expired or whose retry is due, for the consumers of one stream or of all streams, and publish
scheduled messages that are due.

Any number of callers may run it; each consumer is swept by one at a time. receive sweeps its own consumer, so a separate sweep is
only needed for wake-ups and for dead letters of consumers that nobody receives from.

Returns  how many messages became available.
Raises   PB404 for an unknown stream.
Touches  lease, settled, waiting (delete), waiting, due, dead_letter, sweep_state (insert); scheduled (delete), the log (insert).
Locks    each consumer's sweep mutex and each stream's schedule, one after the other, until the transaction ends; busy ones are
         skipped.
*/
declare
    reader postbus_data.consumer;
    only_id integer := case when stream is not null then postbus_data.stream_id(stream) end;
    -- In a query it would not be looked up in an index.
    now_at timestamptz := clock_timestamp();
    due_id integer;
    made integer := 0;
begin
    for reader in
        select c.*
        from postbus_data.consumer as c
        left join lateral (
            select s.*, s.swept_to - interval '5 seconds' as from_time
            from postbus_data.sweep_state as s
            where s.consumer_id = c.id
                and s.epoch = c.epoch
            order by s.swept_to desc
            limit 1
        ) as swept on true
        where (only_id is null or c.stream_id = only_id)
            and not c.is_group
            -- Of thousands of consumers most are idle. A sweep of one that has nothing to redeliver would only note that it was there.
            and (
                swept.swept_to is null
                or swept.full_sweep_at < now_at - interval '1 minute'
                or swept.delivery_rate > 0
                or exists (
                    select
                    from postbus_data.lease as l
                    where l.consumer_id = c.id
                        and l.deadline > swept.from_time
                        and l.deadline <= now_at
                )
                or exists (
                    select
                    from postbus_data.waiting as w
                    where w.consumer_id + 0 = c.id
                        and w.due_at > swept.from_time
                        and w.due_at <= now_at
                )
                -- As position_sum, which takes four times as long to call.
                or (
                    select coalesce(sum(coalesce(place.read_to_seq, c.start_after)) * 1024 / c.partition_count, 0)::bigint
                    from generate_series(c.partition_base, c.partition_base + c.partition_count - 1) as p (n)
                    left join lateral (
                        select r.read_to_seq
                        from postbus_data.position as r
                        where r.consumer_id = c.id
                            and r.epoch = c.epoch
                            and r.partition = p.n
                        order by r.read_to_seq desc
                        limit 1
                    ) as place on true
                ) <> swept.position_sum
            )
        order by c.id
    loop
        made := made + postbus_data.sweep_consumer(reader);
    end loop;
    for due_id in
        select s.id
        from postbus_data.stream as s
        where (only_id is null or s.id = only_id)
            and exists (select from postbus_data.scheduled as d where d.stream_id = s.id and d.deliver_at <= now_at)
    loop
        made := made + postbus_data.append_scheduled(due_id);
    end loop;
    return made;
end
$$;

create or replace function postbus_data.pulse(consumer_ids bigint[], seen bigint[])
returns table (wake boolean, seen_now bigint)
language plpgsql
volatile
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
set search_path = pg_catalog, pg_temp
as $$
/*
Whether there may be something to receive for each of some waiting consumers, in their order. Read-only and cheap.

seen     up to which seq each has been told of messages.

Awake are consumers whose stream is complete beyond that, who have expired leases or due retries, or to whom an ack may give room at any
moment (those in order "partition", or with a small max_ack_pending, while something is in flight). One that was dropped is awake, so that its
receiver finds out.
*/
declare
    reader postbus_data.consumer;
    from_time timestamptz;
    place integer;
begin
    for place in 1 .. coalesce(cardinality(consumer_ids), 0) loop
        seen_now := seen[place];
        select c.* into reader from postbus_data.consumer as c where c.id = consumer_ids[place];
        wake := reader.id is null;
        if not wake and pg_sequence_last_value(to_regclass('postbus_data.seq_' || reader.stream_id)) > seen_now then
            seen_now := greatest(seen_now, postbus_data.horizon_of(reader.stream_id));
            wake := seen_now > seen[place];
        end if;
        if not wake then
            from_time := to_timestamp((postbus_data.sweep_mark(reader)).hi / 1000000.0) - interval '5 seconds';
            wake := exists (
                select
                from postbus_data.lease as l
                where l.consumer_id = reader.id
                    and l.deadline > from_time
                    and (
                        l.deadline <= clock_timestamp()
                        or reader.ordering = 'partition'
                        or reader.max_ack_pending < 1000
                    )
            ) or exists (
                select
                from postbus_data.waiting as w
                where w.consumer_id = reader.id
                    and w.due_at > from_time
                    and w.due_at <= clock_timestamp()
            );
        end if;
        return next;
    end loop;
end
$$;

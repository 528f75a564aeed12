create or replace function postbus_data.sweep_consumer(reader postbus_data.consumer)
returns integer
language plpgsql
volatile
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
/*
Turn expired leases into failures, one for each message that was not settled, and move what is due to the redelivery log.

A sweep visits each entry of the two time indexes a few times at most, including dead entries that a held snapshot keeps:
sweep_state says up to which time they were swept. A row that commits slightly behind that time is found by the next sweep. A
row that commits later (a receive or nack in a longer transaction) is found by a look five seconds back, every second, or by a
full sweep each minute. The same holds for rows behind a time in the future, when the clock was set back.

Returns  how many messages became available.
Touches  lease, settled, waiting, saved (delete), waiting, due, dead_letter, sweep_state (insert).
Locks    the consumer's sweep mutex; returns 0 at once when another session holds it. Skips locked leases: somebody is settling
         them.
*/
declare
    now_at timestamptz := clock_timestamp();
    state postbus_data.sweep_state;
    from_time timestamptz;
    is_full boolean;
    is_wide boolean;
    failed integer;
    made integer;
    swept_to timestamptz := now_at;
    positions bigint;
begin
    if not pg_try_advisory_xact_lock(postbus_data.consumer_lock_class(reader.id), postbus_data.consumer_lock('sweep')) then
        return 0;
    end if;
    state := postbus_data.sweep_state_of(reader);
    is_full := state.full_sweep_at < now_at - interval '1 minute' or state.swept_to > now_at + interval '1 second';
    is_wide := is_full or state.wide_sweep_at < now_at - interval '1 second';
    from_time := case
        when is_full then '-infinity'
        when is_wide then state.swept_to - interval '5 seconds'
        else state.swept_to - interval '250 milliseconds'
    end;

    -- Messages published here can be received after the commit: by the next receive, not by the one that called this.
    perform postbus_data.append_scheduled(reader.stream_id);
    failed := postbus_data.expire_leases(reader, from_time, now_at);
    made := failed;
    if reader.ordering = 'none' then
        -- Leases that have just expired may be due at once.
        made := postbus_data.append_due(reader, from_time, clock_timestamp());
    end if;

    if greatest(failed, made) >= 1000 then
        -- Each takes a limited number at once. After an outage or a large redrive there are more, and the next sweep continues
        -- from there.
        swept_to := least(
            now_at,
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
    end if;

    if is_full and reader.retain_dead is not null then
        with gone as (
            delete from postbus_data.dead_letter as d
            where d.consumer_id + 0 = reader.id
                and d.died_at < now_at - reader.retain_dead
            returning d.seq
        )
        delete from postbus_data.saved as s
        where s.consumer_id = reader.id
            and s.seq in (select g.seq from gone as g);
    end if;

    -- Moved only from time to time: an idle consumer that is polled all the time should not write all the time.
    if greatest(failed, made) > 0 or is_wide then
        delete from postbus_data.sweep_state as s
        where s.consumer_id = reader.id
            and s.epoch = reader.epoch
            and s.swept_to = state.swept_to;
        positions := coalesce(postbus_data.position_sum(reader), state.position_sum);
        insert into postbus_data.sweep_state (
            consumer_id, epoch, swept_to, full_sweep_at, wide_sweep_at, position_sum, delivery_rate, timed_out_count
        )
        values (
            reader.id, reader.epoch, swept_to,
            case when is_full then now_at else state.full_sweep_at end,
            case when is_wide then now_at else state.wide_sweep_at end,
            positions,
            least(postbus_data.delivery_rate(state, positions, now_at), 2147483647),
            state.timed_out_count + failed
        );
    end if;
    return made;
end
$$;

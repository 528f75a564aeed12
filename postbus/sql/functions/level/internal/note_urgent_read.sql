create or replace function postbus_data.note_urgent_read(reader postbus_data.consumer, counted bigint, last_seq bigint, horizon bigint)
returns void
language plpgsql
volatile
as $$
/*
Note that a consumer has taken all messages of the levels above the default that were counted so far, if it has. Then a receive need not look for any
until others are counted.

counted   the counter of urgent messages, read first.
last_seq  the last seq, read after that.
horizon   read after that.

What is committed is enough to judge by: positions only move on over messages that are leased or parked, and parked ones count here.
Touches  urgent_position (insert; delete of the last one).
Locks    a mutex for this row, until the transaction ends; does nothing if another session holds it.
*/
#variable_conflict use_variable
declare
    former record;
begin
    if horizon < last_seq then
        return;
    end if;
    select u.read_to_count, u.read_to_seq
    into former
    from postbus_data.urgent_position as u
    where u.consumer_id = reader.id
        and u.epoch = reader.epoch
    order by u.read_to_count desc
    limit 1;
    if former.read_to_count >= counted
        or postbus_data.is_behind(reader)
        or exists (
            select
            from unnest(postbus_data.lanes(reader.stream_id)) as lane
            cross join lateral postbus_data.lane_work(reader, lane, horizon, true) as w
            where lane >= 500000000
        )
        or not pg_try_advisory_xact_lock(postbus_data.consumer_lock_class(reader.id), postbus_data.consumer_lock('note urgent'))
    then
        return;
    end if;
    delete from postbus_data.urgent_position as u
    where u.consumer_id = reader.id
        and u.epoch = reader.epoch
        and u.read_to_count = former.read_to_count;
    insert into postbus_data.urgent_position (consumer_id, epoch, read_to_count, read_to_seq)
    values (reader.id, reader.epoch, counted, last_seq)
    on conflict on constraint urgent_position_pkey do nothing;
end
$$;

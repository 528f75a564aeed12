create or replace function postbus_data.drag(reader postbus_data.consumer, token bigint, seqs bigint[])
returns void
language plpgsql
volatile
as $$
/*
In order "key": take back, from the same lease, what comes after failed messages and has their keys. It was not tried, so this delivery
does not count.

Touches  settled, waiting (insert), lease (delete).
*/
declare
    later bigint[];
    message record;
begin
    select array_agg(m.seq)
    into later
    from postbus_data.lease as l
    cross join lateral unnest(l.seqs, l.keys) as m (seq, key)
    where l.token = drag.token
        and m.seq <> all (drag.seqs)
        and exists (
            select
            from postbus_data.waiting as w
            where w.consumer_id = reader.id
                and w.partition = l.partition
                and w.seq = any (drag.seqs)
                and w.key = m.key
                and w.seq < m.seq
            union all
            select
            from postbus_data.dead_letter as d
            where d.consumer_id = reader.id
                and d.seq = any (drag.seqs)
                and d.key = m.key
                and d.seq < m.seq
                and reader.on_dead = 'hold'
        );
    if later is null then
        return;
    end if;
    for message in select s.* from postbus_data.settle(reader.id, reader.epoch, drag.token, later, null) as s loop
        insert into postbus_data.waiting (consumer_id, partition, seq, key, attempts, due_at, reason)
        values (
            reader.id, message.partition, message.seq, message.key, message.attempt - 1, clock_timestamp(),
            'an earlier message of its key failed'
        )
        on conflict on constraint waiting_pkey do nothing;
    end loop;
end
$$;

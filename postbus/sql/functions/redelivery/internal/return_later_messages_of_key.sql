create or replace function postbus_data.return_later_messages_of_key(reader postbus_data.consumer, token bigint, seqs bigint[])
returns void
language plpgsql
volatile
as $$
/*
In order "key": return, from the same lease, the later messages that have the keys of failed ones. They were not tried, so this
delivery does not count.

Touches  settled, waiting (insert), lease (delete).
*/
declare
    later bigint[];
    message record;
begin
    with failed as materialized (
        select f.key, min(f.seq) as first_seq
        from (
            select w.key, w.seq
            from postbus_data.waiting as w
            where w.consumer_id = reader.id
                and w.partition = (select l.partition from postbus_data.lease as l where l.token = return_later_messages_of_key.token limit 1)
                and w.seq = any (return_later_messages_of_key.seqs)
            union all
            select d.key, d.seq
            from postbus_data.dead_letter as d
            where d.consumer_id = reader.id
                and d.seq = any (return_later_messages_of_key.seqs)
                and reader.on_dead = 'hold'
        ) as f
        group by f.key
    )
    select array_agg(m.seq)
    into later
    from postbus_data.lease as l
    cross join lateral unnest(l.seqs, l.keys) as m (seq, key)
    join failed as f on f.key = m.key and f.first_seq < m.seq
    where l.token = return_later_messages_of_key.token
        and m.seq not in (select unnest(return_later_messages_of_key.seqs));
    if later is null then
        return;
    end if;
    for message in select s.* from postbus_data.settle_messages(reader.id, reader.epoch, return_later_messages_of_key.token, later, null) as s loop
        insert into postbus_data.waiting (consumer_id, partition, seq, key, attempts, due_at, reason)
        values (
            reader.id, message.partition, message.seq, message.key, message.attempt - 1, clock_timestamp(),
            'an earlier message of its key is not done'
        )
        on conflict on constraint waiting_pkey do nothing;
    end loop;
end
$$;

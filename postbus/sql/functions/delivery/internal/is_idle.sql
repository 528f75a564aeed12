create or replace function postbus_data.is_idle(reader postbus_data.consumer, partition integer)
returns boolean
language sql
volatile
as $$
/*
Whether a partition has nothing in flight of any level, in the orders "key" and "partition". A guess: it does not take the partition's mutex.
*/
    select not exists (
        select
        from (
            select p.leases
            from postbus_data.position as p
            where p.consumer_id = reader.id
                and p.epoch = reader.epoch
                and p.partition = mod(is_idle.partition, 100000000)
            order by p.read_to_seq desc
            limit 1
        ) as p
        cross join lateral unnest(p.leases) as t (token)
        join lateral (select from postbus_data.lease as l where l.token = t.token limit 1) as l on true
    )
$$;

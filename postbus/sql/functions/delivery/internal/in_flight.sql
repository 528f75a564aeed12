create or replace function postbus_data.in_flight(
    consumer_id integer,
    epoch integer,
    partition integer,
    redelivered boolean
)
returns bigint
language sql
volatile
as $$
/*
How many messages of a consumer are leased and not settled. Optionally only those of a partition, or only first deliveries or
only redeliveries; null counts all.
*/
    select coalesce(sum(cardinality(l.seqs) - s.settled_count), 0)
    from postbus_data.lease as l
    cross join lateral (
        select count(*) as settled_count
        from postbus_data.settled as s
        where s.token = l.token
            and s.seq = any (l.seqs)
    ) as s
    where l.consumer_id = in_flight.consumer_id
        and l.epoch = in_flight.epoch
        and (in_flight.partition is null or l.partition = in_flight.partition)
        and (redelivered is null or (l.attempts is not null) = redelivered)
$$;

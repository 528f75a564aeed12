create or replace function postbus_data.count_in_flight(
    consumer_id integer,
    epoch integer,
    partition integer,
    partition_base integer,
    leases bigint[],
    since timestamptz,
    out pending_bound bigint,
    out pending_since timestamptz
)
language plpgsql
volatile
as $$
/*
How many messages of a partition are in flight, of all levels together, for a position whose pending_bound is used up.

leases   the leases of the position, in an order that lists them. Otherwise null: then only first deliveries are counted,
         because failed messages have a quota of their own, and those of partitions below partition_base, of an older layout,
         count towards every partition, so that the total is never too high.
since    pending_since of the position.

Returns  pending_since: no counted lease ends before it. So the next count skips all leases finished before this one, which
         Postgres cannot remove from the index while somebody holds a snapshot.
*/
#variable_conflict use_variable
begin
    if leases is not null then
        select coalesce(sum(cardinality(l.seqs) - s.settled_count), 0)
        into pending_bound
        from postbus_data.lease as l
        cross join lateral (
            select count(*) as settled_count
            from postbus_data.settled as s
            where s.token = l.token
                and s.seq = any (l.seqs)
        ) as s
        where l.token = any (leases)
            and l.consumer_id + 0 = consumer_id
            and l.epoch = epoch;
        return;
    end if;
    select coalesce(sum(cardinality(l.seqs) - s.settled_count), 0), coalesce(min(l.deadline), 'infinity')
    into pending_bound, pending_since
    from postbus_data.lease as l
    cross join lateral (
        select count(*) as settled_count
        from postbus_data.settled as s
        where s.token = l.token
            and s.seq = any (l.seqs)
    ) as s
    where l.consumer_id = consumer_id
        and l.deadline >= coalesce(since, '-infinity'::timestamptz)
        and l.epoch = epoch
        and (mod(l.partition, 100000000) = partition or mod(l.partition, 100000000) < partition_base)
        and l.attempts is null;
end
$$;

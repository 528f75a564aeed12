create or replace function postbus_data.count_sqs_queue(name text)
returns table (visible_count bigint, in_flight_count bigint, delayed_count bigint)
language plpgsql
stable
as $$
/*
How many messages of a queue can be received, are in flight, or wait for their time. Exact up to 1,000, as count_backlog says; delayed ones up to 10,000.

A lease that has expired counts as visible, before any sweep; what waits after a failure counts as in flight, as its visibility was changed.

Raises  PB404 for an unknown queue.
*/
declare
    queue postbus_data.sqs_queue := postbus_data.find_sqs_queue(name);
    expired bigint;
    later bigint;
begin
    select coalesce(sum(cardinality(l.seqs) - (select count(*) from postbus_data.settled as s where s.token = l.token and s.seq = any (l.seqs))), 0)
    into expired
    from postbus_data.lease as l
    join postbus_data.consumer as c on c.id = l.consumer_id and c.epoch = l.epoch
    where l.consumer_id = queue.consumer_id
        and l.deadline <= clock_timestamp();
    select count(*)
    into later
    from (
        select
        from postbus_data.waiting as w
        where w.consumer_id + 0 = queue.consumer_id
            and w.due_at > clock_timestamp()
        limit 10000
    ) as w;
    return query
    select
        b.unread + b.waiting - later + expired, b.in_flight - expired + later,
        (select count(*) from (select from postbus_data.scheduled as s where s.stream_id = queue.stream_id limit 10000) as s)
    from postbus_data.count_backlog(queue.consumer_id) as b;
end
$$;

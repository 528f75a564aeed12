create or replace function postbus_data.held_messages(stream_id integer)
returns table (partition integer, seq bigint)
language sql
volatile
as $$
/* The messages that consumers of a stream hold: in flight and not settled, failed, parked, or due for redelivery. */
    with reader as materialized (
        select c.id, c.epoch from postbus_data.consumer as c where c.stream_id = held_messages.stream_id
    )
    select l.partition, m.seq
    from reader as c
    join postbus_data.lease as l on l.consumer_id = c.id and l.epoch = c.epoch
    cross join lateral unnest(l.seqs) as m (seq)
    where not exists (select from postbus_data.settled as s where s.token = l.token and s.seq = m.seq)
    union
    select w.partition, w.seq from reader as c join postbus_data.waiting as w on w.consumer_id = c.id
    union
    select p.partition, p.seq from reader as c join postbus_data.parked as p on p.consumer_id = c.id and p.epoch = c.epoch
    union
    select d.partition, d.seq from reader as c join postbus_data.due as d on d.consumer_id = c.id and d.epoch = c.epoch
$$;

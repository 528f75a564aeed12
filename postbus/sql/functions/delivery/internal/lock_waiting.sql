create or replace function postbus_data.lock_waiting(consumer_id integer, partition integer, seqs bigint[])
returns bigint[]
language plpgsql
volatile
as $$
/*
Lock failed messages of a partition that are to be redelivered, without waiting. A late ack in an open transaction may hold some of
them: then only those before the first such message may be taken, so that they stay in order.

Returns  the seqs that may be taken; null for none. Seqs that are not of failed messages are not locked.
Locks    rows of waiting.
*/
begin
    return (
        with locked as materialized (
            select w.seq
            from postbus_data.waiting as w
            where w.consumer_id = lock_waiting.consumer_id
                and w.partition = lock_waiting.partition
                and w.seq = any (lock_waiting.seqs)
            for update skip locked
        ),
        held as (
            select min(w.seq) as seq
            from postbus_data.waiting as w
            where w.consumer_id = lock_waiting.consumer_id
                and w.partition = lock_waiting.partition
                and w.seq = any (lock_waiting.seqs)
                and w.seq not in (select l.seq from locked as l)
        )
        select array_agg(s.seq order by s.seq)
        from unnest(lock_waiting.seqs) as s (seq)
        cross join held as h
        where h.seq is null or s.seq < h.seq
    );
end
$$;

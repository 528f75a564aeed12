create or replace function postbus_data.count_held(stream_id integer, out message_count bigint, out bytes bigint, out segment_count integer)
language plpgsql
stable strict
as $$
/*
How many messages a stream holds, and what its log takes on disk.

message_count  those in the log, and those that retention has passed while a consumer still holds them. Exact up to 1,000. Beyond, what Postgres's statistics say, which are a second or so late; or an estimate from the first
               messages of each partition, while the statistics know of fewer than 1,000.
*/
#variable_conflict use_variable
declare
    known bigint;
    partitions integer[];
    start_seq bigint;
    purged_seq bigint;
    is_exact boolean;
    passed integer;
begin
    select s.start_seq, s.purged_seq into start_seq, purged_seq from postbus_data.stream as s where s.id = stream_id;
    select count(*), coalesce(sum(pg_stat_get_live_tuples(t.log)), 0), coalesce(sum(pg_total_relation_size(t.log)), 0)
    into segment_count, known, bytes
    from (
        select to_regclass(postbus_data.log_table(g.stream_id, g.number)) as log
        from postbus_data.segment as g
        where g.stream_id = stream_id
    ) as t;
    partitions := array(
        select p.n
        from (select distinct g.partition_base, g.partition_count from postbus_data.segment as g where g.stream_id = stream_id) as g
        cross join lateral postbus_data.segment_partitions(stream_id, g.partition_base, g.partition_count) as p (n)
        order by p.n
    );
    select c.message_count, c.is_exact
    into message_count, is_exact
    from postbus_data.count_messages(
        stream_id, partitions, array_fill(greatest(start_seq - 1, 0), array[cardinality(partitions)]), 'true', null
    ) as c;
    if not is_exact and known > 1000 then
        message_count := known;
    elsif start_seq > purged_seq then
        -- Of each consumer's, the first thousand are looked at.
        select count(distinct h.seq) into passed
        from postbus_data.consumer as c
        cross join lateral (
            (select w.seq from postbus_data.waiting as w where w.consumer_id = c.id limit 1000)
            union all
            (select p.seq from postbus_data.parked as p where p.consumer_id = c.id and p.epoch = c.epoch limit 1000)
            union all
            (select d.seq from postbus_data.due as d where d.consumer_id = c.id and d.epoch = c.epoch limit 1000)
            union all
            (
                select m.seq
                from postbus_data.lease as l
                cross join lateral unnest(l.seqs) as m (seq)
                where l.consumer_id = c.id
                    and l.epoch = c.epoch
                    and not exists (select from postbus_data.settled as s where s.token = l.token and s.seq = m.seq)
                limit 1000
            )
        ) as h
        where c.stream_id = count_held.stream_id
            and h.seq >= purged_seq
            and h.seq < start_seq;
        message_count := message_count + passed;
    end if;
end
$$;

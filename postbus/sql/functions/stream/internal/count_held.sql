create or replace function postbus_data.count_held(stream_id integer, out message_count bigint, out bytes bigint, out segment_count integer)
language plpgsql
stable strict
as $$
/*
How many messages the log of a stream holds, and what it takes on disk.

message_count  exact up to 1,000. Beyond, what Postgres's statistics say, which are a second or so late; or an estimate from the first
               messages of each partition, while the statistics know of fewer than 1,000.
*/
#variable_conflict use_variable
declare
    known bigint;
    partitions integer[];
    start_seq bigint := (select s.start_seq from postbus_data.stream as s where s.id = stream_id);
    is_exact boolean;
begin
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
        cross join lateral generate_series(g.partition_base, g.partition_base + g.partition_count - 1) as p (n)
        order by p.n
    );
    select c.message_count, c.is_exact
    into message_count, is_exact
    from postbus_data.count_messages(
        stream_id, partitions, array_fill(greatest(start_seq - 1, 0), array[cardinality(partitions)]), 'true', null
    ) as c;
    if not is_exact and known > 1000 then
        message_count := known;
    end if;
end
$$;

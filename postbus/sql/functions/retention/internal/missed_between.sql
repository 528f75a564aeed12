create or replace function postbus_data.missed_between(stream_id integer, partition integer, after_seq bigint, start_seq bigint, partition_count integer)
returns bigint
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
How many messages of a partition with after_seq < seq < start_seq are gone from the stream. Seqs without a message do not count.

Exact for segments that were dropped whole, and for up to 1,000 messages of each segment that still exists. Above that, and for
part of a dropped segment, it is an estimate that assumes evenly spread messages. Messages of dropped segments count as those of the default level, whatever
theirs was. Segments dropped before counts were kept are
left out.

It runs with the rights of its owner, so that no role needs rights on dropped.
*/
#variable_conflict use_variable
declare
    missed bigint;
    segment record;
    here bigint;
begin
    select coalesce(sum(
        d.counts[partition - d.partition_base + 1]
        * (least(d.last_seq, start_seq - 1) - greatest(d.after_seq, after_seq)) / greatest(1, d.last_seq - d.after_seq)
    ), 0) into missed
    from postbus_data.dropped as d
    where d.stream_id = stream_id
        and d.last_seq > after_seq
        and d.after_seq < start_seq - 1
        and partition between d.partition_base and d.partition_base + cardinality(d.counts) - 1;
    for segment in
        select g.number, greatest(g.after_seq, after_seq) as from_seq, least(coalesce(g.last_seq, start_seq - 1), start_seq - 1) as to_seq
        from postbus_data.segment as g
        where g.stream_id = stream_id
            and (g.last_seq is null or g.last_seq > after_seq)
            and g.after_seq < start_seq - 1
            and mod(partition, 100000000) between g.partition_base and g.partition_base + g.partition_count - 1
    loop
        execute 'select count(*) from (select from ' || postbus_data.log_table(stream_id, segment.number)
            || ' as l where l.partition = $1 and l.seq > $2 and l.seq < $3 limit 1001) as m'
        into here
        using partition, after_seq, start_seq;
        missed := missed + case when here > 1000 then greatest(here, (segment.to_seq - segment.from_seq) / partition_count) else here end;
    end loop;
    return missed;
end
$$;

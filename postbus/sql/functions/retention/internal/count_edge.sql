create or replace function postbus_data.count_edge(stream postbus_data.stream, horizon bigint)
returns bigint
language plpgsql
volatile
set enable_seqscan = off
set enable_bitmapscan = off
as $$
/*
The seq below which messages must go for a stream to stay within max_messages; null when it does.

Seqs are not counts: a crash leaves up to 32 of them unused, and so does each rollback. A stream that keeps few messages would
lose all of them, so up to 10,000 messages are counted, by the index. Above that, the difference between seqs is used.
*/
declare
    edge bigint := horizon - stream.max_messages + 1;
    segment postbus_data.segment;
    -- One more than may stay.
    remaining bigint := least(stream.max_messages, 10000) + 1;
    found_count bigint;
    lowest bigint;
begin
    if (edge > greatest(stream.start_seq, 1)) is not true then
        return null;
    end if;
    if stream.max_messages > 10000 then
        return edge;
    end if;
    for segment in
        select s.*
        from postbus_data.segment as s
        where s.stream_id = stream.id
            and (s.sealed_at is null or s.last_seq >= stream.start_seq)
        order by s.number desc
    loop
        execute format(
            'select count(*), min(m.seq)
            from (
                select m.seq
                from postbus_data.segment_partitions(%s, %s, %s) as p (n)
                cross join lateral (
                    select l.seq from %s as l where l.partition = p.n and l.seq between $1 and $2 order by l.seq desc limit $3
                ) as m
                order by m.seq desc
                limit $3
            ) as m',
            segment.stream_id,
            segment.partition_base,
            segment.partition_count,
            postbus_data.log_table(stream.id, segment.number)
        ) into found_count, lowest using stream.start_seq, horizon, remaining;
        remaining := remaining - found_count;
        if remaining = 0 then
            return lowest + 1;
        end if;
    end loop;
    return null;
end
$$;

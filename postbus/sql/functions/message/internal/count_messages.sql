create or replace function postbus_data.count_messages(
    stream_id integer,
    partitions integer[],
    after_seqs bigint[],
    condition text,
    reader postbus_data.consumer,
    out message_count bigint,
    out is_exact boolean,
    out oldest_at timestamptz
)
language plpgsql
stable
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
set search_path = pg_catalog, pg_temp
as $$
/*
How many messages a stream holds in these partitions, each above its seq. It counts up to 1,000 of them one by one; if there are more, it
estimates from the first messages of each partition, taking the rest to be as dense.

partitions  in ascending order, of one level or more; after_seqs has the seq for each.
condition   on l, a row of the log, which may name the reader as $4.

Returns  is_exact: they were all counted. oldest_at: when the oldest of those that it looked at was published.

Stable, so all its statements have the snapshot of the query that calls it, and the messages count as they were at one moment. It looks at
no more than 1,001 messages to count, and at about 1,000 more to estimate, however many there are.
*/
#variable_conflict use_variable
declare
    most constant integer := 1000;
    source constant text := 'from unnest($1, $2) with ordinality as p (partition, after_seq, place)
        cross join lateral (
            select l.seq, l.key, l.headers, l.published_at, l.expires_at
            from %s as l
            where l.partition = p.partition
                and l.seq > p.after_seq
            order by l.seq';
    newest_seq bigint := pg_sequence_last_value(to_regclass('postbus_data.seq_' || stream_id));
    lowest_seq bigint := (select min(a) from unnest(after_seqs) as a);
    segment record;
    looked_at bigint := 0;
    here record;
    per_partition integer;
    found_in double precision[];
    estimate double precision := 0;
    reached_seq bigint;
begin
    message_count := 0;
    is_exact := true;
    for segment in
        select postbus_data.log_table(g.stream_id, g.number) as log
        from postbus_data.segment as g
        where g.stream_id = stream_id
            and g.partition_base >= mod(partitions[1], 100000000)
            and (g.sealed_at is null or g.last_seq > lowest_seq)
        order by g.number
    loop
        begin
            execute format(
                'select count(*) as seen, count(*) filter (where m.is_wanted) as wanted, min(m.published_at) filter (where m.is_wanted) as oldest
                from (select %s as is_wanted, l.published_at ' || source || ') as l limit $3) as m',
                condition,
                segment.log
            )
            into here
            using partitions, after_seqs, most + 1 - looked_at, reader;
        exception when undefined_table then
            -- It was dropped since: its messages are gone.
            continue;
        end;
        looked_at := looked_at + here.seen;
        message_count := message_count + here.wanted;
        oldest_at := least(oldest_at, here.oldest);
        is_exact := looked_at <= most;
        exit when not is_exact;
    end loop;
    if is_exact then
        return;
    end if;

    looked_at := 0;
    per_partition := greatest(8, most / cardinality(partitions));
    found_in := array_fill(0::float8, array[cardinality(partitions)]);
    for segment in
        select
            postbus_data.log_table(g.stream_id, g.number) as log, g.after_seq, coalesce(g.last_seq, g.rolled_at_seq, newest_seq) as last_seq,
            max(coalesce(g.last_seq, g.rolled_at_seq, newest_seq)) over (partition by g.partition_base) as end_seq
        from postbus_data.segment as g
        where g.stream_id = stream_id
            and g.partition_base >= mod(partitions[1], 100000000)
            and (g.sealed_at is null or g.last_seq > lowest_seq)
        order by g.number
    loop
        begin
            for here in execute format(
                'select p.place, p.after_seq, s.*
                from unnest($1, $2) with ordinality as p (partition, after_seq, place)
                cross join lateral (
                    select count(*) as seen, count(*) filter (where m.is_wanted) as wanted, max(m.seq) as last_seq,
                        min(m.published_at) filter (where m.is_wanted) as oldest
                    from (
                        select %s as is_wanted, l.seq, l.published_at
                        from (
                            select l.seq, l.key, l.headers, l.published_at, l.expires_at
                            from %s as l
                            where l.partition = p.partition
                                and l.seq > p.after_seq
                            order by l.seq
                            limit $3
                        ) as l
                    ) as m
                ) as s
                where s.seen > 0',
                condition,
                segment.log
            ) using partitions, after_seqs, per_partition, reader
            loop
                looked_at := looked_at + here.seen;
                oldest_at := least(oldest_at, here.oldest);
                if here.seen < per_partition then
                    found_in[here.place] := found_in[here.place] + here.wanted;
                else
                    estimate := estimate + found_in[here.place] + here.wanted * greatest(
                        1.0,
                        (segment.end_seq - greatest(here.after_seq, segment.after_seq))::float8
                        / (here.last_seq - greatest(here.after_seq, segment.after_seq))
                    );
                    found_in[here.place] := 0;
                    partitions[here.place] := null;
                end if;
            end loop;
        exception when undefined_table then
            continue;
        end;
        reached_seq := segment.last_seq;
        -- Many small segments: what follows is like what was seen.
        exit when looked_at > 4 * most or cardinality(array_remove(partitions, null)) = 0;
    end loop;
    estimate := estimate + (select sum(f) from unnest(found_in) as f)
        * greatest(1.0, (newest_seq - lowest_seq)::float8 / greatest(1, reached_seq - lowest_seq));
    -- Each has a seq of its own.
    message_count := greatest(message_count, least(round(estimate)::bigint, newest_seq - lowest_seq), 1);
end
$$;

create or replace function postbus_data.window_statement(
    source postbus_data.stream,
    after_seq bigint,
    to_seq bigint,
    filter postbus_data.read_filter,
    max_messages integer,
    backwards boolean
)
returns text
language sql
volatile
as $$
/* The statement that read_window executes; null when no segment holds such seqs. */
    select string_agg(
        format(
            'select m.seq, m.partition, m.key, %s, %s, m.headers, m.published_at, null::text, postbus.priority_of(m.partition)
            from unnest(%L::integer[]) as p (n)
            cross join lateral (
                select l.* from %s as l where l.partition = p.n and l.seq > $1 and l.seq <= $2 offset 0
            ) as m
            where ($3 is null or m.key = $3)
                and ($4 is null or m.key ~ $4)
                and ($5 is null or m.published_at >= $5)
                and ($6 is null or m.published_at < $6)',
            case when source.data_type = 'bytes' then 'null::text' else 'm.data::text' end,
            case when source.data_type = 'bytes' then 'm.data' else 'null::bytea' end,
            part.partitions,
            postbus_data.log_table(g.stream_id, g.number)
        ),
        ' union all '
        order by g.number
    ) || ' order by 1' || case when backwards then ' desc' else '' end || ' limit ' || max_messages
    from postbus_data.segment as g
    cross join lateral (
        select array_agg(p.n) as partitions
        from postbus_data.segment_partitions(g.stream_id, g.partition_base, g.partition_count) as p (n)
        where (filter.partition is null or p.n = filter.partition)
            and (
                filter.partition is not null
                or filter.key is null
                or mod(p.n, 100000000) = g.partition_base + postbus.partition_of(coalesce(postbus_data.channel_of(filter.key, source.channel_tokens), filter.key), g.partition_count)
            )
    ) as part
    where g.stream_id = source.id
        and g.after_seq < to_seq
        and (g.last_seq > window_statement.after_seq or g.sealed_at is null)
        and part.partitions is not null
$$;

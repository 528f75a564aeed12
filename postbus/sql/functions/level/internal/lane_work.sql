create or replace function postbus_data.lane_work(
    reader postbus_data.consumer,
    lane integer,
    horizon bigint,
    only_new boolean default false
)
returns table (partition integer, head_at timestamptz)
language plpgsql
volatile
set enable_seqscan = off
set enable_bitmapscan = off
as $$
/*
The partitions of a level in which a consumer may find something, judged by what is committed: an unread message up to the horizon, a parked one, or one
that has failed, in an order in which these wait in their partition.

horizon   read in an earlier statement.
only_new  leave out partitions that have only failed messages, or that were not looked at for long.

Returns  head_at: when the next unread message was published.
*/
#variable_conflict use_variable
declare
    base integer := lane + reader.partition_base;
    last integer := base + reader.partition_count - 1;
    lane_start bigint := greatest(reader.start_after, least(postbus_data.lane_start(reader.stream_id, lane), horizon));
    taken_to bigint := (select s.start_seq - 1 from postbus_data.stream as s where s.id = reader.stream_id);
    is_ordered boolean := reader.ordering <> 'none' and not only_new;
    older_failures boolean := false;
    partitions integer[];
    after_seqs bigint[];
    others integer[];
    segment record;
    head record;
begin
    if lane >= 500000000 then
        taken_to := greatest(
            taken_to,
            (
                select u.read_to_seq
                from postbus_data.urgent_position as u
                where u.consumer_id = reader.id
                    and u.epoch = reader.epoch
                order by u.read_to_count desc
                limit 1
            )
        );
    end if;
    if is_ordered and reader.partition_base > 0 then
        older_failures := exists (
            select from postbus_data.waiting as w where w.consumer_id = reader.id and w.partition >= lane and w.partition < base
        );
    end if;
    select
        array_agg(p.n), array_agg(greatest(coalesce(place.read_to_seq, lane_start), taken_to)),
        array_agg(p.n) filter (
            where place.parked_from is not null
                or (not only_new and greatest(coalesce(place.read_to_seq, lane_start), taken_to) < horizon - 10000)
                or older_failures
                or (
                    is_ordered
                    and exists (select from postbus_data.waiting as w where w.consumer_id = reader.id and w.partition = p.n)
                )
        )
    into partitions, after_seqs, others
    from generate_series(base, last) as p (n)
    left join lateral (
        select r.read_to_seq, r.parked_from
        from postbus_data.position as r
        where r.consumer_id = reader.id
            and r.epoch = reader.epoch
            and r.partition = p.n
        order by r.read_to_seq desc
        limit 1
    ) as place on true;

    for segment in
        select postbus_data.log_table(g.stream_id, g.number) as log
        from postbus_data.segment as g
        where g.stream_id = reader.stream_id
            and (g.sealed_at is null or g.last_seq > (select min(a) from unnest(after_seqs) as a))
            and g.after_seq < horizon
        order by g.number
    loop
        for head in execute format(
            'select p.partition, p.place, m.published_at
            from unnest($1, $2) with ordinality as p (partition, after_seq, place)
            cross join lateral (
                select l.published_at
                from %s as l
                where l.partition = p.partition
                    and l.seq > p.after_seq
                    and l.seq <= $3
                order by l.seq
                limit 1
            ) as m',
            segment.log
        ) using partitions, after_seqs, horizon
        loop
            partition := head.partition;
            head_at := head.published_at;
            return next;
            partitions[head.place] := null;
            others := array_remove(others, head.partition);
        end loop;
        exit when array_remove(partitions, null) = '{}';
    end loop;
    head_at := null;
    foreach partition in array coalesce(others, '{}') loop
        return next;
    end loop;
end
$$;

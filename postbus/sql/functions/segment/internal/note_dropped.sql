create or replace function postbus_data.note_dropped(stream_id integer, number integer)
returns void
language plpgsql
volatile
as $$
/*
Record how many messages of each partition, of all levels together, a sealed segment holds that is about to be dropped.

Touches  the segment's table (read), dropped (insert; update and delete of the oldest).
*/
#variable_conflict use_variable
declare
    segment postbus_data.segment := (select g from postbus_data.segment as g where g.stream_id = stream_id and g.number = number);
    oldest postbus_data.dropped[];
    counts bigint[];
begin
    execute format(
        'select array_agg(coalesce(c.count, 0) order by p.n)
        from generate_series(0, %s) as p (n)
        left join (select mod(l.partition, 100000000) as partition, count(*) as count from %s as l group by 1) as c on c.partition = p.n + %s',
        segment.partition_count - 1, postbus_data.log_table(stream_id, number), segment.partition_base
    ) into counts;
    insert into postbus_data.dropped (stream_id, number, partition_base, after_seq, last_seq, counts)
    values (stream_id, number, segment.partition_base, segment.after_seq, segment.last_seq, counts)
    on conflict do nothing;

    if (select count(*) > 100 from postbus_data.dropped as d where d.stream_id = stream_id) then
        oldest := array(select d from postbus_data.dropped as d where d.stream_id = stream_id order by d.number limit 2);
        delete from postbus_data.dropped as d where d.stream_id = stream_id and d.number = oldest[1].number;
        -- Of a former layout: its partitions are no more.
        update postbus_data.dropped as d
        set after_seq = oldest[1].after_seq,
            last_seq = case when 0 < any (d.counts) then d.last_seq else oldest[1].last_seq end,
            counts = array(select a.count + b.count
                from unnest(oldest[1].counts) with ordinality as a (count, place)
                join unnest(oldest[2].counts) with ordinality as b (count, place) using (place)
                order by place)
        where d.stream_id = stream_id
            and d.number = oldest[2].number
            and oldest[1].partition_base = oldest[2].partition_base;
    end if;
end
$$;

create or replace function postbus_data.position_sum(reader postbus_data.consumer)
returns bigint
language sql
volatile
as $$
/*
The positions of a consumer in all its partitions, added up as if there were 1,024 of them. Seqs are shared by all partitions, so this grows by 1,024 for each
message that is given out, about, and at least by 1. One probe for each partition, whatever dead rows there are.
*/
    select coalesce(sum(coalesce(place.read_to_seq, reader.start_after)) * 1024 / reader.partition_count, 0)::bigint
    from generate_series(reader.partition_base, reader.partition_base + reader.partition_count - 1) as p (n)
    left join lateral (
        select r.read_to_seq
        from postbus_data.position as r
        where r.consumer_id = reader.id
            and r.epoch = reader.epoch
            and r.partition = p.n
        order by r.read_to_seq desc
        limit 1
    ) as place on true
$$;

create or replace function postbus_data.position_sum(reader postbus_data.consumer)
returns bigint
language sql
volatile
as $$
/*
The sum of a consumer's positions, scaled as if it had 1,024 partitions. Partitions share one range of seqs, so the sum grows by
about 1,024 for each message delivered, and by at least 1. One probe for each partition, however many dead rows there are. Null
when the stream got other partitions since the reader was looked up: its positions are all at the end.
*/
    select case
        when max(place.read_to_seq) = 9223372036854775807 then null
        else coalesce(sum(coalesce(place.read_to_seq, reader.start_after)) * 1024 / reader.partition_count, 0)::bigint
    end
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

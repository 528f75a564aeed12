create or replace function postbus_data.position_sum(reader postbus_data.consumer)
returns bigint
language sql
volatile
as $$
/*
The positions of a consumer in all partitions, added up. Seqs are shared by all partitions, so this grows by the number of partitions for each message
that is given out, about. One probe for each partition, whatever dead rows there are.
*/
    select coalesce(sum(coalesce(place.hi, reader.start_after)), 0)::bigint
    from (
        select pg_sequence_last_value(to_regclass('postbus_data.layout_' || reader.stream_id)) as register
    ) as layout
    cross join lateral generate_series(
        ((layout.register >> 11) & 16777215)::integer, (((layout.register >> 11) & 16777215) + (layout.register & 2047) - 1)::integer
    ) as p (n)
    left join lateral (
        select r.hi
        from postbus_data.position as r
        where r.consumer_id = reader.id
            and r.epoch = reader.epoch
            and r.partition = p.n
        order by r.hi desc
        limit 1
    ) as place on true
$$;

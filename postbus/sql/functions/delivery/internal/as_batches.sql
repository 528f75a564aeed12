create or replace function postbus_data.as_batches(messages postbus.delivery[])
returns setof postbus_data.batch
language sql
immutable
as $$
/* Deliveries grouped by lease. */
    select
        left(m.ack_id, 16), m.partition, array_agg(m.seq), array_agg(m.attempt), array_agg(m.key),
        case when count(m.data) > 0 then array_agg(m.data) end,
        case when count(m.bytes) > 0 then array_agg(m.bytes) end,
        array_agg(m.headers), array_agg(m.published_at)
    from (select m.* from unnest(messages) as m order by m.seq) as m
    group by left(m.ack_id, 16), m.partition
$$;

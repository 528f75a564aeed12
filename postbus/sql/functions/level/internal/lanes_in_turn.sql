create or replace function postbus_data.lanes_in_turn(reader postbus_data.consumer, horizon bigint)
returns integer[]
language sql
volatile
as $$
/*
The levels in use, as lanes, in the order in which a consumer is to be served: the highest first. With ageing, a level rises by one for each such interval
that its first message has waited.
*/
    select case
        when reader.ageing is null then postbus_data.lanes(reader.stream_id)
        else (
            select array_agg(l.lane order by l.head_at - postbus.priority_of(l.lane) * reader.ageing, l.place)
            from (
                select
                    u.lane, u.place,
                    coalesce((select min(w.head_at) from postbus_data.lane_work(reader, u.lane, horizon) as w), clock_timestamp()) as head_at
                from unnest(postbus_data.lanes(reader.stream_id)) with ordinality as u (lane, place)
            ) as l
        )
    end
$$;

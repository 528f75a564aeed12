create or replace function postbus_data.spark_history(
    consumer_id integer,
    from_time timestamptz,
    to_time timestamptz,
    caller postbus.caller default postbus.current_caller()
)
returns setof postbus_data.history
language plpgsql
volatile
security definer
set enable_seqscan = off
set enable_bitmapscan = off
set search_path = pg_catalog, pg_temp
as $$
/*
The history of a consumer with from_time <= finished_at < to_time, in order of that time. No rows for a caller that may not
consume its stream.
*/
begin
    return query
    select h.*
    from postbus_data.history as h
    where h.consumer_id = spark_history.consumer_id
        and h.finished_at >= from_time
        and h.finished_at < to_time
        and exists (
            select
            from postbus_data.consumer as c
            where c.id = spark_history.consumer_id
                and postbus_data.has_right(caller, c.stream_id, 'consume')
        )
    order by h.finished_at;
end
$$;

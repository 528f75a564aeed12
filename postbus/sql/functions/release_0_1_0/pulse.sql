create or replace function postbus_data.pulse(
    stream_ids bigint[],
    seen bigint[],
    caller postbus.caller default postbus.current_caller()
)
returns setof bigint
language sql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/* stream_horizons, as the library of release 0.1.0 calls it. */
    select h from postbus_data.stream_horizons(stream_ids, seen, caller) as h
$$;

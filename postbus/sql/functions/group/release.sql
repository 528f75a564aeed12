create or replace function postbus.release(
    stream text,
    "group" text,
    tokens text[],
    caller postbus.caller default postbus.current_caller()
)
returns integer
language plpgsql
volatile
security definer
set enable_seqscan = off
set search_path = pg_catalog, pg_temp
as $$
/*
Give ranges back that were claimed with a lease: the next claim gets them.

Returns  how many counted.
Raises   PB404, PB409 for a consumer that is not a group.
*/
declare
    reader postbus_data.consumer := postbus_data.permitted_group(caller, stream, "group");
    released integer;
begin
    update postbus_data.lease as l
    set deadline = clock_timestamp()
    where l.token = any (array(select postbus_data.parse_token(t) from unnest(tokens) as t))
        and l.consumer_id + 0 = reader.id
        and l.epoch = reader.epoch;
    get diagnostics released = row_count;
    return released;
end
$$;

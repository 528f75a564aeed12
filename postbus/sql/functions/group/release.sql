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
Give back ranges that were claimed with a lease. The next claim gets them.

Returns  how many ranges counted.
Raises   PB400 for what is not a token, PB403 without the right to consume, PB404 for an unknown stream or group, PB409 for a consumer that is not a group.
Touches  lease (update).
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
    if released < cardinality(tokens) then
        -- Perhaps some are no tokens at all.
        perform count(*) from postbus_data.parse_ack_ids(tokens);
    end if;
    return released;
end
$$;

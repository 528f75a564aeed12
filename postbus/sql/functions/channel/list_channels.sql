create or replace function postbus.list_channels(stream text, caller postbus.caller default postbus.current_caller())
returns table (pattern text, max_concurrency integer, max_rate integer, per interval, burst integer, weight integer, paused boolean)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
The limits of a stream's channels, by pattern: see set_channel. channel_states says how the channels themselves do.

Raises   PB403 without a right to the stream, PB404 for an unknown stream.
*/
#variable_conflict use_column
declare
    source integer := postbus_data.permitted_stream(caller, stream, 'consume', 'read', 'publish');
begin
    return query
    select c.pattern, c.max_concurrency, c.max_rate, c.per, c.burst, c.weight, c.paused
    from postbus_data.channel as c
    where c.stream_id = source
    order by c.pattern;
end
$$;

create or replace function postbus.resume_channel(stream text, pattern text)
returns boolean
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Let a paused pattern of channels go on, with the limits that it has; remove_channel removes these.

Returns  whether it was paused.
Raises   PB404 for an unknown stream.
Touches  channel, turn (update).
Locks    the mutexes of the stream's consumers until the transaction ends.
*/
#variable_conflict use_variable
declare
    limited integer := postbus_data.stream_id(stream);
begin
    update postbus_data.channel as c set paused = false where c.stream_id = limited and c.pattern = pattern and c.paused;
    if not found then
        return false;
    end if;
    perform postbus_data.release_channels(limited, pattern);
    return true;
end
$$;

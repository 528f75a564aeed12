create or replace function postbus.remove_channel(stream text, pattern text)
returns boolean
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Remove the limits of a pattern, from the next receive on. Channels that it matched have those of another pattern, or none.

Returns  whether the pattern had limits.
Raises   PB404 for an unknown stream.
Touches  channel (delete), turn (update).
Locks    the mutexes of the stream's consumers until the transaction ends.
*/
#variable_conflict use_variable
declare
    limited integer := postbus_data.stream_id(stream);
begin
    delete from postbus_data.channel as c where c.stream_id = limited and c.pattern = pattern;
    if not found then
        return false;
    end if;
    perform postbus_data.release_channels(limited, pattern);
    return true;
end
$$;

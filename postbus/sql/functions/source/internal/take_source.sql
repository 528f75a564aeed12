create or replace function postbus_data.take_source(name text, holder uuid, lasts interval)
returns postbus_data.source
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
/*
Take a source for one reader, or keep it. Others get it when it was not kept for as long as it lasts. What protects the stream is the
position (see publish_source): two readers would only be in each other's way.

Returns  its settings, with its URL; null when another reader has it, it is paused, or it is gone.
Touches  source_status (update).
Locks    the row of source_status, until the transaction ends; it does not wait for it.
*/
declare
    taken postbus_data.source;
begin
    -- A crash may forget who it was: then it is free a little earlier.
    perform set_config('synchronous_commit', 'off', true);
    select s.* into taken from postbus_data.source as s where s.name = take_source.name and not s.paused;
    update postbus_data.source_status as u
    set holder = take_source.holder,
        held_at = clock_timestamp()
    where u.source_id in (select o.source_id from postbus_data.source_status as o where o.source_id = taken.id for update skip locked)
        and (
            u.holder is null
            or u.holder = take_source.holder
            -- A clock that was set back must not keep it for long.
            or u.held_at not between clock_timestamp() - lasts and clock_timestamp() + lasts
        );
    if not found then
        return null;
    end if;
    return taken;
end
$$;

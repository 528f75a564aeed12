create or replace function postbus_data.take_upkeep(holder uuid, lasts interval)
returns boolean
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Take the upkeep for one process of the library, or keep it: sweeping and maintaining all streams again and again. Others get it
when it was not kept for as long as it lasts. Whoever maintains without asking, such as the server or cron, keeps it from all.

Returns  whether the holder has it now.
Touches  upkeep (update).
Locks    the row of upkeep, until the transaction ends; it does not wait for it.
*/
declare
    free_since timestamptz := clock_timestamp() - lasts;
begin
    -- A crash may forget who it was: then it is free a little earlier.
    perform set_config('synchronous_commit', 'off', true);
    update postbus_data.upkeep as u
    set holder = take_upkeep.holder,
        held_at = clock_timestamp()
    where u.singleton in (select o.singleton from postbus_data.upkeep as o for update skip locked)
        and (
            u.holder = take_upkeep.holder
            or greatest(u.held_at, u.maintained_at) is null
            -- A clock that was set back must not keep it for long.
            or greatest(u.held_at, u.maintained_at) not between free_since and clock_timestamp() + lasts
        );
    return found;
end
$$;

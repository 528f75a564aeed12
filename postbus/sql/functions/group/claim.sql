create or replace function postbus.claim(
    stream text,
    "group" text,
    max_messages integer default 100,
    lease interval default null,
    worker text default null,
    caller postbus.caller default postbus.current_caller()
)
returns setof postbus.claimed
language plpgsql
volatile
security definer
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
set search_path = pg_catalog, pg_temp
as $$
/*
Claim the next messages of a group: ranges of partitions, together at most max_messages messages, to read with fetch.

lease    null: the group moves on at once, and a range whose worker dies is lost (at most once). Otherwise a range that is not
         committed within the lease is claimed again (at least once), and nobody gets more of its partition until then.
worker   only partitions assigned to this worker; see join_group.

Returns  the claimed ranges; no rows when nothing is available. The first partition is chosen at random, so that none starves.
Raises   PB400 for an argument out of range, PB403 without the right to consume, PB404 for an unknown stream or group, PB409 for a
         consumer that is not a group, PB412 outside READ COMMITTED, PB503 on a standby.
Touches  position, lease (insert, delete).
Locks    the mutex of each partition it claims from, until the transaction ends; partitions that another claim has locked are
         skipped.
*/
begin
    return query
    select c.*
    from postbus_data.claim_ranges(postbus_data.permitted_group(caller, stream, "group"), max_messages, lease, worker, null) as c;
end
$$;

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
Claim the next messages of a group: ranges of partitions, of up to max_messages messages together, to be read with fetch.

lease    without one the group moves on at once: a range whose claimer dies is lost (at most once). With one, a range that is not committed in this time is
         given again (at least once), and nobody gets more of its partition before.
worker   only partitions that are assigned to this worker; see join_group.

Returns  no rows when there is nothing. Which partition comes first is random, so that none starves.
Raises   PB400 for arguments out of range, PB404, PB409 for a consumer that is not a group, PB412 outside READ COMMITTED.
Touches  position, lease (insert, delete).
Locks    the partition's mutex, until the transaction ends; partitions that somebody else claims from are passed over.
*/
begin
    return query
    select c.*
    from postbus_data.claim_ranges(postbus_data.permitted_group(caller, stream, "group"), max_messages, lease, worker, null) as c;
end
$$;

create or replace function postbus.leave_group(
    stream text,
    "group" text,
    worker text,
    caller postbus.caller default postbus.current_caller()
)
returns void
language plpgsql
volatile
security definer
set enable_seqscan = off
set search_path = pg_catalog, pg_temp
as $$
/*
Leave a group. The other workers take over the partitions when they next call join_group.

Raises   PB403 without the right to consume, PB404 for an unknown stream or group, PB409 for a consumer that is not a group.
Touches  group_worker, group_owner (delete).
Locks    the group's assignment, until the transaction ends.
*/
declare
    reader postbus_data.consumer := postbus_data.permitted_group(caller, stream, "group");
begin
    perform pg_advisory_xact_lock(postbus_data.consumer_lock_class(reader.id), postbus_data.consumer_lock('share out'));
    delete from postbus_data.group_owner as o where o.consumer_id = reader.id and o.worker = leave_group.worker;
    delete from postbus_data.group_worker as w where w.consumer_id = reader.id and w.worker = leave_group.worker;
end
$$;

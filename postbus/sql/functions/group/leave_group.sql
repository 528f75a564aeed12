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
/* Be a worker of a group no more: the others take its partitions when they call join_group again. Raises PB404, PB409. */
declare
    reader postbus_data.consumer := postbus_data.permitted_group(caller, stream, "group");
begin
    perform pg_advisory_xact_lock(postbus_data.consumer_lock_class(reader.id), postbus_data.consumer_lock('share out'));
    delete from postbus_data.group_owner as o where o.consumer_id = reader.id and o.worker = leave_group.worker;
    delete from postbus_data.group_worker as w where w.consumer_id = reader.id and w.worker = leave_group.worker;
end
$$;

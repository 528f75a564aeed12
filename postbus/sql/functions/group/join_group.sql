create or replace function postbus.join_group(
    stream text,
    "group" text,
    worker text,
    session interval default interval '30 seconds',
    caller postbus.caller default postbus.current_caller()
)
returns integer[]
language plpgsql
volatile
security definer
set enable_seqscan = off
set search_path = pg_catalog, pg_temp
as $$
/*
Join a group as a worker, and call again before the session ends to stay in it. Partitions are shared evenly among the live
workers: a worker keeps its partitions up to its share, gives up the others and takes free ones. Then claim with the worker's
name.

A worker that does not call within its session counts as dead, and the next call by another worker takes its share. Ranges that it
has claimed stay its own until they are committed or their leases expire, so a partition never has two readers.

Returns  the worker's partitions.
Raises   PB400 for an invalid name or session, PB403 without the right to consume, PB404 for an unknown stream or group, PB409
         for a consumer that is not a group, PB412 outside READ COMMITTED.
Touches  group_worker, group_owner (insert, update, delete).
Locks    the group's assignment, until the transaction ends.
*/
#variable_conflict use_column
declare
    reader postbus_data.consumer := postbus_data.permitted_group(caller, stream, "group");
    partition_base integer := reader.partition_base;
    partition_count integer := reader.partition_count;
    worker_count integer;
    rank integer;
    share integer;
    owned integer;
begin
    perform postbus_data.check_isolation();
    perform postbus_data.check_name('worker', worker);
    if (session between interval '1 second' and interval '1 day') is not true then
        raise exception using errcode = 'PB400', message = format('session = %s is not between 1 second and 1 day', session);
    end if;
    perform pg_advisory_xact_lock(postbus_data.consumer_lock_class(reader.id), postbus_data.consumer_lock('share out'));

    insert into postbus_data.group_worker as w (consumer_id, worker, expires_at)
    values (reader.id, join_group.worker, clock_timestamp() + session)
    on conflict (consumer_id, worker) do update set expires_at = excluded.expires_at;
    delete from postbus_data.group_worker as w where w.consumer_id = reader.id and w.expires_at <= clock_timestamp();
    delete from postbus_data.group_owner as o
    where o.consumer_id = reader.id
        and (
            o.partition not between partition_base and partition_base + partition_count - 1
            or not exists (select from postbus_data.group_worker as w where w.consumer_id = o.consumer_id and w.worker = o.worker)
        );

    select count(*), count(*) filter (where w.worker < join_group.worker) into worker_count, rank
    from postbus_data.group_worker as w
    where w.consumer_id = reader.id;
    share := partition_count / worker_count + case when rank < mod(partition_count, worker_count) then 1 else 0 end;
    delete from postbus_data.group_owner as o
    where o.consumer_id = reader.id
        and o.partition in (
            select o.partition
            from postbus_data.group_owner as o
            where o.consumer_id = reader.id
                and o.worker = join_group.worker
            order by o.partition
            offset share
        );
    select count(*) into owned from postbus_data.group_owner as o where o.consumer_id = reader.id and o.worker = join_group.worker;
    insert into postbus_data.group_owner (consumer_id, partition, worker)
    select reader.id, p.n, join_group.worker
    from generate_series(partition_base, partition_base + partition_count - 1) as p (n)
    where not exists (select from postbus_data.group_owner as o where o.consumer_id = reader.id and o.partition = p.n)
    order by p.n
    limit share - owned;
    return postbus_data.owned_partitions(reader.id, worker);
end
$$;

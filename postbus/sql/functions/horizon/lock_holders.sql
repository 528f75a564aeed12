create or replace function postbus.lock_holders(stream text default null)
returns table (
    stream_name text,
    consumer_name text,
    purpose text,
    partition integer,
    mode text,
    warning text,
    held_for interval,
    pid integer,
    user_name text,
    application_name text,
    state text,
    query text,
    prepared_transaction text
)
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
/*
The sessions that hold Postbus's advisory locks, on one stream or on all, the oldest transaction first. Read-only.

purpose   publish (readers wait for it), claim (of a partition), redeliver, sweep, count (near max_ack_pending), share out (a
          group's partitions), change layout, note urgent (that no urgent messages are left; nobody waits for it), maintain or schedule.
mode      shared or exclusive. Publishers take shared locks, everything else takes exclusive ones.
warning   why the lock is probably not one that Postbus took; null if nothing indicates that. Any role can take such a lock, and a
          session that waits for it cannot tell.
held_for  how long its transaction has been open; for a lock that outlives transactions, the time since the session's last
          activity.

pid is null for a prepared transaction. Other users' query and times are null unless you have pg_read_all_stats.

Raises   PB404 for an unknown stream.
*/
#variable_conflict use_column
declare
    wanted integer := case when stream is not null then postbus_data.stream_id(stream) end;
begin
    return query
    with held as (
        select
            l.*,
            l.classid::bigint - 1073741824 as class,
            ((l.objid::bigint << 32) >> 32)::integer as key,
            l.mode = 'ShareLock' as is_shared,
            l.classid::bigint < 1610612736 as is_publisher
        from pg_locks as l
        where l.locktype = 'advisory'
            and l.database = (select d.oid from pg_database as d where d.datname = current_database())
            and l.objsubid = 2
            and l.granted
            and l.classid::bigint between 1073741825 and 2147483647
    ),
    named as (
        select
            h.*,
            coalesce(c.stream_id, s.id) as stream_id,
            coalesce(c.stream_name, s.name) as stream_name,
            c.name as consumer_name
        from held as h
        left join postbus_data.consumer as c on not h.is_publisher and c.id = h.class - 536870912
        left join postbus_data.stream as s on s.id = case when h.is_publisher then h.class when h.class = 536870912 then abs(h.key) end
    )
    select
        n.stream_name,
        n.consumer_name,
        case
            when n.is_publisher then 'publish'
            when n.consumer_name is null and n.key < 0 then 'schedule'
            when n.consumer_name is null then 'maintain'
            when n.key >= 0 then 'claim'
            else coalesce(('{redeliver,sweep,count,share out,null,change layout,note urgent}'::text[])[-n.key], 'nothing')
        end,
        case when n.consumer_name is not null and n.key >= 0 then n.key end,
        case when n.is_shared then 'shared' else 'exclusive' end,
        case
            when not has_schema_privilege(a.usesysid, 'postbus', 'usage') then 'its role has no right to use Postbus'
            when n.is_publisher and not n.is_shared then 'publishers take shared locks, and this one is exclusive'
            when n.is_shared and not n.is_publisher then 'this lock is shared, and Postbus takes exclusive ones'
            when a.state = 'idle' then 'its session has no transaction, and keeps it until it ends'
            when n.is_publisher and t.transactionid is null then 'its transaction has written nothing'
        end,
        clock_timestamp() - coalesce(a.xact_start, p.prepared, a.state_change),
        n.pid,
        coalesce(a.usename, p.owner)::text,
        a.application_name,
        a.state,
        a.query,
        p.gid
    from named as n
    left join pg_stat_activity as a on a.pid = n.pid
    left join pg_locks as t
        on t.locktype = 'transactionid'
        and t.mode = 'ExclusiveLock'
        and t.virtualtransaction = n.virtualtransaction
        and t.pid is not distinct from n.pid
    left join pg_prepared_xacts as p on n.pid is null and p.transaction = t.transactionid
    where n.stream_name is not null
        and (wanted is null or n.stream_id = wanted)
        and n.pid is distinct from pg_backend_pid()
    order by coalesce(a.xact_start, p.prepared, a.state_change), n.pid, 3, n.key;
end
$$;

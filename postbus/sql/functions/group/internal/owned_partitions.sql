create or replace function postbus_data.owned_partitions(consumer_id integer, worker text)
returns integer[]
language sql
volatile
as $$
/* The partitions assigned to a worker of a group; none when its session is over. */
    select coalesce(array_agg(o.partition order by o.partition), '{}')
    from postbus_data.group_worker as w
    join postbus_data.group_owner as o on o.consumer_id = w.consumer_id and o.worker = w.worker
    where w.consumer_id = owned_partitions.consumer_id
        and w.worker = owned_partitions.worker
        and w.expires_at > clock_timestamp()
$$;

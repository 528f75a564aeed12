create or replace function postbus.list_sqs_queues(name text default null)
returns setof postbus.sqs_queue_info
language sql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/* The queues for clients of SQS, or only that with a name, in order of their names. */
    select
        q.name, c.stream_name, c.name, q.owns_stream, q.attributes, q.tags, q.created_at, q.changed_at, q.purged_at, q.id, q.id_base::text, s.data_type,
        s.dedup_window is not null
    from postbus_data.sqs_queue as q
    join postbus_data.consumer as c on c.id = q.consumer_id
    join postbus_data.stream as s on s.id = q.stream_id
    where list_sqs_queues.name is null or q.name = list_sqs_queues.name
    order by q.name
$$;

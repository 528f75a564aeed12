create or replace function postbus_data.spark_written(
    stream text,
    writer text,
    caller postbus.caller default postbus.current_caller()
)
returns table (batch_id bigint, message_count bigint, total_count bigint)
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
The last batch that a writer has published to a stream, how many messages it had, and how many all batches had.

Raises   PB403, PB404.
*/
    select w.batch_id, w.message_count, w.total_count
    from postbus_data.spark_writer as w
    where w.stream_id = postbus_data.permitted_stream(caller, stream, 'publish', 'consume', 'read')
        and w.writer = spark_written.writer
$$;

create or replace function postbus_data.spark_begin_batch(
    stream text,
    writer text,
    batch_id bigint,
    query text,
    is_once boolean,
    message_count bigint
)
returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
/*
Record that a writer publishes a batch in this transaction.

Returns  false when the batch is published already.
Raises   PB404 for an unknown stream, PB409 when the writer belongs to another query.
Touches  spark_writer (insert or update).
Locks    the writer's row, so that two drivers cannot both publish a batch.
*/
declare
    target_id integer := postbus_data.stream_id(stream);
    known postbus_data.spark_writer;
begin
    insert into postbus_data.spark_writer as w (stream_id, writer, query, batch_id, is_once, message_count, total_count)
    values (target_id, writer, query, batch_id, is_once, message_count, message_count)
    on conflict on constraint spark_writer_pkey do update
    set batch_id = excluded.batch_id,
        message_count = excluded.message_count,
        total_count = w.total_count + excluded.message_count,
        published_at = clock_timestamp()
    where w.batch_id < excluded.batch_id
        and w.query is not distinct from excluded.query
    returning w.* into known;
    if known.writer is not null then
        return true;
    end if;

    select w.* into known
    from postbus_data.spark_writer as w
    where w.stream_id = target_id
        and w.writer = spark_begin_batch.writer;
    if known.query is distinct from query then
        raise exception using
            errcode = 'PB409',
            message = format('writer "%s" belongs to another query', writer),
            hint = 'a query with a new checkpoint counts from 0 again: give it a writerId of its own, or none';
    end if;
    return false;
end
$$;

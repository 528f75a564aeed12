create or replace function postbus_data.spark_publish(
    stream text,
    writer text,
    batch_id bigint,
    query text,
    is_once boolean,
    attempts uuid[],
    message_counts bigint[],
    caller postbus.caller default postbus.current_caller()
)
returns bigint
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Publish what the tasks of a batch have staged as arrays, in the order of the tasks and of their rows, unless the writer has
published that batch before.

attempts, message_counts  the attempt of each task that counts, and how many messages it staged.
query                     the streaming query, when the writer is one.

Returns  how many messages were published; null when the batch was published before.
Raises   PB400 and PB413 for an invalid message, PB404, PB409 when the writer belongs to another query, PB503 when staged
         messages are gone.
Touches  spark_staging (delete), spark_writer (insert or update), the current segment of the stream (insert).
Locks    the writer's row, so that two drivers cannot both publish a batch; the stream's horizon, shared, until the transaction
         ends.
*/
declare
    staged postbus_data.spark_staging;
    published bigint;
    expected bigint := (select coalesce(sum(n), 0) from unnest(message_counts) as n);
begin
    perform postbus_data.permitted_stream(caller, stream, 'publish');
    if postbus_data.spark_begin_batch(stream, writer, batch_id, query, is_once, expected) then
        published := 0;
        for staged in
            select s.*
            from unnest(attempts) with ordinality as a (attempt, place)
            join postbus_data.spark_staging as s on s.attempt = a.attempt
            where s.writer = stream || '/' || spark_publish.writer
            order by a.place, s.chunk
        loop
            perform postbus_data.spark_publish_chunk(stream, staged);
            published := published + staged.message_count;
        end loop;
    end if;
    perform postbus_data.spark_end_batch(stream, writer, batch_id, attempts, published, expected);
    return published;
end
$$;

create or replace function postbus_data.spark_publish(
    stream text,
    writer text,
    batch_id bigint,
    query text,
    is_once boolean,
    attempts uuid[],
    message_counts bigint[]
)
returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
/*
Publish what the tasks of a batch have staged, in the order of the tasks and of their rows, unless the writer has published that batch before.

attempts, message_counts  the attempt of each task that counts, and how many messages it staged.
query                     the streaming query, when the writer is one.

Returns  how many messages were published; null when the batch was published before.
Raises   PB400 and PB413 for a message that is not allowed, PB404, PB409 when the writer belongs to another query, PB503 when staged messages are gone.
Touches  spark_staging (delete), spark_writer (insert or update), the current segment of the stream (insert).
Locks    the writer's row, so that two drivers cannot both publish a batch; the stream's horizon, shared, until the transaction ends.
*/
declare
    target_id integer := postbus_data.stream_id(stream);
    staged postbus_data.spark_staging;
    known postbus_data.spark_writer;
    published bigint := 0;
    expected bigint := (select coalesce(sum(n), 0) from unnest(message_counts) as n);
begin
    insert into postbus_data.spark_writer as w (stream_id, writer, query, batch_id, is_once, message_count)
    values (target_id, writer, query, batch_id, is_once, expected)
    on conflict on constraint spark_writer_pkey do update
    set batch_id = excluded.batch_id,
        message_count = excluded.message_count,
        published_at = clock_timestamp()
    where w.batch_id < excluded.batch_id
        and w.query is not distinct from excluded.query
    returning w.* into known;

    if known.writer is null then
        select w.* into known
        from postbus_data.spark_writer as w
        where w.stream_id = target_id
            and w.writer = spark_publish.writer;
        if known.query is distinct from query then
            raise exception using
                errcode = 'PB409',
                message = format('writer "%s" counts the batches of another query', writer),
                hint = 'a query with a new checkpoint counts from 0 again: give it a writerId of its own, or none';
        end if;
        published := null;
    else
        for staged in
            select s.*
            from unnest(attempts) with ordinality as a (attempt, place)
            join postbus_data.spark_staging as s on s.attempt = a.attempt
            order by a.place, s.chunk
        loop
            perform postbus_data.spark_publish_chunk(stream, staged);
            published := published + staged.message_count;
        end loop;
        if published <> expected then
            raise exception using
                errcode = 'PB503',
                message = format('%s of %s staged messages are gone: Postgres crashed, or the batch took more than two days', expected - published, expected),
                hint = 'nothing was published; run the batch again';
        end if;
    end if;

    delete from postbus_data.spark_staging as s where s.attempt = any (attempts);
    -- What attempts that do not count, and drivers that died, have left.
    delete from postbus_data.spark_staging as s
    where s.writer = stream || '/' || spark_publish.writer
        and s.batch_id <= spark_publish.batch_id;
    delete from postbus_data.spark_staging as s where s.staged_at < clock_timestamp() - interval '2 days';
    delete from postbus_data.spark_writer as w
    where w.is_once
        and w.published_at < clock_timestamp() - interval '7 days';
    return published;
end
$$;

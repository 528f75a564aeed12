create or replace function postbus_data.spark_end_batch(
    stream text,
    writer text,
    batch_id bigint,
    attempts uuid[],
    published bigint,
    expected bigint
)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
/*
Remove what was staged for a batch that is published, now or before, and stale leftovers.

published, expected  how many messages were found (null when the batch was published before), and how many its tasks have staged.

Raises   PB503 when some are missing.
Touches  spark_staging (delete), spark_writer (delete).
*/
begin
    if published <> expected then
        raise exception using
            errcode = 'PB503',
            message = format('%s of %s staged messages are gone: Postgres crashed, or the batch took more than two days', expected - published, expected),
            hint = 'nothing was published; run the batch again';
    end if;
    delete from postbus_data.spark_staging as s
    where s.attempt = any (attempts)
        and starts_with(s.writer, stream || '/');
    -- Leftovers of attempts that do not count, and of dead drivers.
    delete from postbus_data.spark_staging as s
    where s.writer = stream || '/' || spark_end_batch.writer
        and s.batch_id <= spark_end_batch.batch_id;
    delete from postbus_data.spark_staging as s where s.staged_at < clock_timestamp() - interval '2 days';
    delete from postbus_data.spark_writer as w
    where w.is_once
        and w.published_at < clock_timestamp() - interval '7 days';
end
$$;

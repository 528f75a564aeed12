create or replace function postbus_data.spark_discard(writer text, batch_id bigint, attempts uuid[])
returns void
language sql
set search_path = pg_catalog, pg_temp
as $$
/* Remove what was staged for a batch that is given up, by name where the tasks came so far, and of the writer where it is known. */
    delete from postbus_data.spark_staging as s where s.attempt = any (attempts);
    delete from postbus_data.spark_staging as s
    where s.writer = spark_discard.writer
        and s.batch_id = spark_discard.batch_id;
$$;

create or replace function postbus_data.spark_discard(
    writer text,
    batch_id bigint,
    attempts uuid[],
    caller postbus.caller default postbus.current_caller()
)
returns void
language sql
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Remove what was staged for an abandoned batch: by attempt where the tasks are known, and by writer where it is known.

Raises   PB403, PB404.
*/
    delete from postbus_data.spark_staging as s
    where s.attempt = any (attempts)
        and starts_with(s.writer, split_part(spark_discard.writer, '/', 1) || '/')
        and postbus_data.permitted_stream(caller, split_part(spark_discard.writer, '/', 1), 'publish') is not null;
    delete from postbus_data.spark_staging as s
    where s.writer = spark_discard.writer
        and s.batch_id = spark_discard.batch_id
        and postbus_data.permitted_stream(caller, split_part(spark_discard.writer, '/', 1), 'publish') is not null;
$$;

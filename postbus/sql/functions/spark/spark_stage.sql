create or replace function postbus_data.spark_stage(
    attempt uuid,
    chunk integer,
    writer text,
    batch_id bigint,
    message_count integer,
    keys text[],
    data text[],
    headers jsonb[],
    bytes bytea[],
    deliver_at timestamptz[]
)
returns void
language sql
set search_path = pg_catalog, pg_temp
as $$
/* Put messages of a task where spark_publish finds them. They are checked there. */
    insert into postbus_data.spark_staging (attempt, chunk, writer, batch_id, message_count, keys, data, headers, bytes, deliver_at)
    values (attempt, chunk, writer, batch_id, message_count, keys, data, headers, bytes, deliver_at)
$$;

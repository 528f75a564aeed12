create or replace function postbus_data.spark_staged(attempts uuid[])
returns table (attempt text, chunk integer, message_count integer, is_encoded boolean)
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
/* What these attempts have staged, in the order in which it is published. */
    select s.attempt::text, s.chunk, s.message_count, s.encoded is not null
    from unnest(attempts) with ordinality as a (attempt, place)
    join postbus_data.spark_staging as s on s.attempt = a.attempt
    order by a.place, s.chunk
$$;

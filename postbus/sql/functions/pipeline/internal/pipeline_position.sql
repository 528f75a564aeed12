create or replace function postbus_data.pipeline_position(name text)
returns bigint
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
/* The position of a pipeline; null when it has not begun. */
    select p.position_seq from postbus_data.pipeline as p where p.name = pipeline_position.name
$$;

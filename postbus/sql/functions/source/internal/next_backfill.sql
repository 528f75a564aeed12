create or replace function postbus_data.next_backfill(source_id integer)
returns setof postbus_data.source_table
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
/* The table of a source whose existing rows are to be published next: the one that has begun, else the first that waits. */
    select t.*
    from postbus_data.source_table as t
    where t.source_id = next_backfill.source_id
        and t.backfill in ('pending', 'running')
    order by t.backfill desc, t.started_at, t.table_schema, t.table_name
    limit 1
$$;

create or replace function postbus_data.note_source_tables(source_id integer, schemas text[], names text[], estimates bigint[], backfill boolean)
returns void
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
/*
Record the tables that a source has. Those that are new wait for their backfill, if there is one; those that are gone are forgotten.

Touches  source_table (insert, delete).
*/
    delete from postbus_data.source_table as t
    where t.source_id = note_source_tables.source_id
        and not exists (
            select from unnest(schemas, names) as u (table_schema, table_name) where (u.table_schema, u.table_name) = (t.table_schema, t.table_name)
        );
    insert into postbus_data.source_table (source_id, table_schema, table_name, backfill, estimated_count)
    select
        note_source_tables.source_id, u.table_schema, u.table_name, case when note_source_tables.backfill then 'pending' else 'none' end,
        u.estimate
    from unnest(schemas, names, estimates) as u (table_schema, table_name, estimate)
    on conflict do nothing
$$;

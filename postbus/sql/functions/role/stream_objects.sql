create or replace function postbus_data.stream_objects(stream_id integer)
returns table (kind text, name text, is_log boolean)
language sql
volatile
as $$
/* The tables, sequences and functions that a stream consists of now. */
    select o.kind, o.name, o.is_log
    from (
        select 'sequence' as kind, prefix || stream_id as name, false as is_log from unnest(array['seq_', 'layout_', 'dedup_']) as prefix
        union all
        select 'table', 'state_' || stream_id, false
        union all
        select 'table', 'dedup_' || stream_id || '_' || d.number, false from postbus_data.dedup as d where d.stream_id = stream_objects.stream_id
        union all
        select 'table', 'log_' || stream_id || '_' || g.number, true from postbus_data.segment as g where g.stream_id = stream_objects.stream_id
    ) as o
    where pg_catalog.to_regclass('postbus_data.' || o.name) is not null
    union all
    select 'function', o.name, false
    from (
        select prefix || stream_id as name from unnest(array['publish_', 'publish_many_', 'serve_']) as prefix
        union all
        select 'claim_' || stream_id || '_' || g.number from postbus_data.segment as g where g.stream_id = stream_objects.stream_id
    ) as o
    where pg_catalog.to_regproc('postbus_data.' || o.name) is not null
$$;

create or replace function postbus.list_sources(name text default null)
returns setof postbus.source_info
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
The sources, by name, without their URLs.

state  starting, backfilling, streaming, waiting_for_slot, unreachable, refused, gap, diverged, slot_lost; paused; not_running when no process
       has read it for ten seconds. problem and remedy say more.

Raises   nothing; an unknown name gives no row.
*/
    select
        s.name,
        (select t.name from postbus_data.stream as t where t.id = s.stream_id),
        s.shown_url,
        s.tables,
        s.operations,
        s.columns,
        s.filters,
        s.key_template,
        s.format,
        s.backfill,
        s.slot,
        s.publication,
        case
            when s.paused then 'paused'
            when u.state in ('gap', 'diverged', 'slot_lost') then u.state
            when (u.held_at > clock_timestamp() - interval '10 seconds') is not true then 'not_running'
            else u.state
        end,
        case when not s.paused then u.problem end,
        case when not s.paused then u.remedy end,
        u.lag_bytes,
        u.lag_seconds,
        u.wal_held_bytes,
        u.change_count,
        u.transaction_count,
        u.changes_per_second,
        p.lsn::text,
        p.committed_at,
        coalesce(
            (
                select jsonb_agg(
                    jsonb_build_object(
                        'schema', t.table_schema, 'name', t.table_name, 'backfill', t.backfill, 'row_count', t.row_count, 'estimated_count',
                        t.estimated_count, 'problem', t.problem
                    )
                    order by t.table_schema, t.table_name
                )
                from postbus_data.source_table as t
                where t.source_id = s.id
            ),
            '[]'
        ),
        s.created_at,
        u.updated_at
    from postbus_data.source as s
    left join postbus_data.source_status as u on u.source_id = s.id
    left join lateral (
        select p.lsn, p.committed_at
        from postbus_data.source_position as p
        where p.source_id = s.id
            and p.epoch = s.epoch
        order by p.lsn desc
        limit 1
    ) as p on true
    where list_sources.name is null
        or s.name = list_sources.name
    order by s.name
$$;

create or replace function postbus.backfill_source(name text, tables text[] default null, action text default 'start')
returns integer
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Publish the existing rows of a source's tables, while changes go on: from the beginning (start), or pause, resume or cancel that.

tables  names, or schema.table; null are all that the source has found. A reader has to have found them first.

Returns  how many tables it concerns.
Raises   PB400 for another action, PB404 for an unknown source, or a table that it has not found.
Touches  source_table (update).
*/
declare
    concerned_id integer := postbus_data.find_source(name);
    missing text;
    concerned integer;
begin
    if (action in ('start', 'pause', 'resume', 'cancel')) is not true then
        raise exception using errcode = 'PB400', message = 'action is not one of start, pause, resume and cancel';
    end if;
    select u.wanted into missing
    from unnest(tables) as u (wanted)
    where not exists (
        select
        from postbus_data.source_table as t
        where t.source_id = concerned_id
            and u.wanted in (t.table_schema || '.' || t.table_name, t.table_name)
    );
    if missing is not null then
        raise exception using
            errcode = 'PB404',
            message = format('source "%s" has no table "%s"', name, missing),
            hint = 'list_sources shows those that it has found';
    end if;
    update postbus_data.source_table as t
    set backfill = case action when 'pause' then 'paused' when 'cancel' then 'none' else 'pending' end,
        after_key = case when action in ('start', 'cancel') then null else t.after_key end,
        row_count = case when action = 'start' then 0 else t.row_count end,
        started_at = case when action = 'start' then null else t.started_at end,
        done_at = case when action = 'start' then null else t.done_at end,
        problem = null
    where t.source_id = concerned_id
        and (
            tables is null
            or t.table_schema || '.' || t.table_name = any (tables)
            or t.table_name = any (tables)
        )
        and case action
            when 'start' then true
            when 'pause' then t.backfill in ('pending', 'running')
            when 'resume' then t.backfill in ('paused', 'refused')
            else t.backfill in ('pending', 'running', 'paused', 'refused')
        end;
    get diagnostics concerned = row_count;
    return concerned;
end
$$;

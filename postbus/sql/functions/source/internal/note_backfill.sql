create or replace function postbus_data.note_backfill(
    source_id integer,
    schema_name text,
    table_name text,
    from_key text[],
    to_key text[],
    row_count bigint,
    is_done boolean,
    problem text default null
)
returns boolean
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
/*
Record that a page of a table's rows is published, which began behind from_key. The reader calls it in the transaction of publish_source.

problem  why the table cannot be read: the backfill stops there, until somebody resumes it.

Returns  false when the backfill was begun anew or canceled meanwhile: its progress stays as it is. A page that was under way when it was
         paused counts.
Touches  source_table (update).
*/
#variable_conflict use_column
begin
    update postbus_data.source_table as t
    set backfill = case when note_backfill.problem is not null then 'refused' when is_done then 'done' when t.backfill = 'paused' then 'paused' else 'running' end,
        after_key = case when note_backfill.problem is not null then t.after_key else coalesce(to_key, t.after_key) end,
        row_count = t.row_count + note_backfill.row_count,
        started_at = coalesce(t.started_at, clock_timestamp()),
        done_at = case when is_done then clock_timestamp() end,
        problem = note_backfill.problem
    where t.source_id = note_backfill.source_id
        and t.table_schema = note_backfill.schema_name
        and t.table_name = note_backfill.table_name
        and t.backfill in ('pending', 'running', 'paused')
        and t.after_key is not distinct from from_key;
    return found;
end
$$;

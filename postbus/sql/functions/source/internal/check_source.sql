create or replace function postbus_data.check_source(
    tables text[], operations text[], columns jsonb, filters jsonb, key_template text, format text
)
returns void
language plpgsql
immutable
as $$
/* Refuse settings of a source that cannot be used (PB400). */
declare
    problem text := case
        when coalesce(cardinality(tables), 0) = 0 then 'tables is empty: name at least one table'
        when array_position(tables, null) is not null or exists (select from unnest(tables) as t where t !~ '^([^.]+\.)?[^.]+$')
            then 'tables has something else than names and patterns such as "public.orders" or "shop.*"'
        when coalesce(cardinality(operations), 0) = 0 or not operations <@ array['insert', 'update', 'delete', 'truncate']
            then 'operations may name insert, update, delete and truncate, and has to name one'
        when jsonb_typeof(columns) is distinct from 'object'
            or exists (select from jsonb_each(columns) as c where jsonb_typeof(c.value) <> 'array' or c.value = '[]')
            then 'columns is not an object with a list of columns for each table'
        when jsonb_typeof(filters) is distinct from 'object' or exists (select from jsonb_each(filters) as f where jsonb_typeof(f.value) <> 'string')
            then 'filters is not an object with a condition for each table'
        when (key_template ~ '^[^.\x01-\x20\x7f*>%]+(\.[^.\x01-\x20\x7f*>%]+)*$') is not true
            then 'key_template is not tokens joined by dots, such as db.schema.table.pk'
        when (format in ('sequin', 'sequin2024', 'debezium')) is not true then 'format is not one of sequin, sequin2024 and debezium'
    end;
begin
    if problem is not null then
        raise exception using errcode = 'PB400', message = problem;
    end if;
end
$$;

create or replace function postbus.alter_source(
    name text,
    tables text[] default null,
    operations text[] default null,
    columns jsonb default null,
    filters jsonb default null,
    key_template text default null,
    format text default null,
    url text default null,
    shown_url text default null
)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Change a source. A null leaves a setting as it is. Its reader begins anew with the settings within seconds, from where it was; changes that were
committed before that may come in either form.

url  another way to the same cluster. With another cluster the source stops, in the state diverged.

Raises   PB400 for an invalid setting, PB404 for an unknown source.
Touches  source (update).
*/
#variable_conflict use_variable
declare
    settings postbus_data.source;
    altered integer := postbus_data.find_source(name);
begin
    select s.* into settings from postbus_data.source as s where s.id = altered for update;
    settings.tables := coalesce(tables, settings.tables);
    settings.operations := coalesce(operations, settings.operations);
    settings.columns := coalesce(columns, settings.columns);
    settings.filters := coalesce(filters, settings.filters);
    settings.key_template := coalesce(key_template, settings.key_template);
    settings.format := coalesce(format, settings.format);
    perform postbus_data.check_source(
        settings.tables, settings.operations, settings.columns, settings.filters, settings.key_template, settings.format
    );
    update postbus_data.source as s
    set tables = settings.tables,
        operations = settings.operations,
        columns = settings.columns,
        filters = settings.filters,
        key_template = settings.key_template,
        format = settings.format,
        url = coalesce(alter_source.url, s.url),
        shown_url = case when alter_source.url is null then s.shown_url else alter_source.shown_url end,
        version = s.version + 1
    where s.id = altered;
end
$$;

create or replace function postbus.create_source(
    name text,
    stream text,
    tables text[],
    url text default null,
    operations text[] default '{insert,update,delete,truncate}',
    columns jsonb default '{}',
    filters jsonb default '{}',
    key_template text default 'db.schema.table.pk',
    format text default 'sequin',
    backfill boolean default true,
    slot text default null,
    publication text default null,
    paused boolean default false,
    shown_url text default null
)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Create a Postgres source: changes of tables become messages of a stream. A process of the library reads it (postbus up, or postbus
source run), and makes its slot and its publication when it first does. Changes of before are not published, but as rows of the backfill.

url           the database with the tables; null is this one. It is stored, and only Postbus's owner can read it.
tables        patterns of schema.table, where * stands for any characters; without a schema, tables on the search path.
operations    of insert, update, delete and truncate.
columns       by schema.table, an array of the columns to publish. All without.
filters       by schema.table, a condition for the rows to publish, in SQL.
key_template  tokens joined by dots: db, schema, table, pk, action and source stand for what they name.
format        sequin, sequin2024 or debezium.
backfill      publish the existing rows too, with the action read.
slot          the name of its replication slot; null makes one up.
publication   one that exists, to be used as it is; null makes one.
shown_url     what people see of url.

Raises   PB400 for an invalid setting, PB404 for an unknown stream, PB409 when the source exists, or the stream does not hold JSON.
Touches  source, source_status (insert).
*/
#variable_conflict use_variable
declare
    target postbus_data.stream;
    made_up text := left(replace(lower(name), '-', '_'), 40) || '_' || substr(md5(gen_random_uuid()::text), 1, 6);
    created integer;
begin
    perform postbus_data.check_name('source', name);
    select s.* into target from postbus_data.stream as s where s.id = postbus_data.stream_id(stream);
    if target.data_type <> 'json' then
        raise exception using
            errcode = 'PB409',
            message = format('stream "%s" holds %s, and changes are JSON', stream, target.data_type),
            hint = 'create a stream with the type json for them';
    end if;
    perform postbus_data.check_source(tables, operations, columns, filters, key_template, format);
    if slot !~ '^[a-z0-9_]{1,63}$' then
        raise exception using
            errcode = 'PB400',
            message = format('slot name "%s" is not allowed', slot),
            hint = 'use 1 to 63 lower-case letters, digits or "_"';
    end if;
    insert into postbus_data.source as s (
        name, stream_id, url, shown_url, tables, operations, columns, filters, key_template, format, backfill, slot, publication,
        is_foreign_publication, paused
    )
    values (
        name, target.id, url, coalesce(shown_url, case when url is null then current_database() end), tables, operations, columns, filters,
        key_template, format, backfill, coalesce(slot, 'postbus_' || made_up), coalesce(publication, 'postbus_' || made_up),
        publication is not null, paused
    )
    on conflict do nothing
    returning s.id into created;
    if created is null then
        raise exception using
            errcode = 'PB409',
            message = format('source "%s" already exists', name),
            hint = 'change it with alter_source, or drop it first';
    end if;
    insert into postbus_data.source_status (source_id) values (created);
end
$$;

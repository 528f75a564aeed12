create or replace function postbus.create_roles()
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
/*
Create the roles that people and applications can be made members of, if they do not exist, and give them their rights here: postbus_publisher may publish to
all streams, postbus_consumer receive from all, postbus_reader read all; postbus_owner owns what Postbus stores, and may do everything. For rights on one
stream see grant_stream.

Needs the owner of Postbus, with the right to create roles; no superuser. Roles are shared by all databases of a server, their rights are not.
*/
declare
    wanted text;
    object record;
begin
    foreach wanted in array array['postbus_owner', 'postbus_publisher', 'postbus_consumer', 'postbus_reader'] loop
        if to_regrole(wanted) is null then
            execute format('create role %I nologin', wanted);
        end if;
    end loop;
    perform postbus.grant_stream(null, 'postbus_publisher', 'publish');
    perform postbus.grant_stream(null, 'postbus_consumer', 'consume');
    perform postbus.grant_stream(null, 'postbus_reader', 'read');

    if not pg_has_role(current_user, 'postbus_owner', 'usage') then
        execute format('grant postbus_owner to %I', current_user);
    end if;
    grant all on schema postbus, postbus_data to postbus_owner;
    for object in
        select case c.relkind when 'S' then 'sequence' else 'table' end as kind, c.oid::regclass::text as name
        from pg_class as c
        where c.relnamespace in ('postbus'::regnamespace, 'postbus_data'::regnamespace)
            and (
                c.relkind = 'r'
                -- Those of identity columns go with their tables.
                or (c.relkind = 'S' and not exists (select from pg_depend as d where d.objid = c.oid and d.deptype = 'i'))
            )
            and c.relowner <> 'postbus_owner'::regrole
        union all
        select 'function', p.oid::regprocedure::text
        from pg_proc as p
        where p.pronamespace in ('postbus'::regnamespace, 'postbus_data'::regnamespace)
            and p.proowner <> 'postbus_owner'::regrole
    loop
        execute format('alter %s %s owner to postbus_owner', object.kind, object.name);
    end loop;
end
$$;

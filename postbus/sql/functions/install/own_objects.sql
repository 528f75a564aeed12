create or replace function postbus_data.own_objects(owner name)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
/*
Give everything in the schemas of Postbus to one role. Functions run with the rights of their owner, so all must have the same
owner, whichever member of that role has installed or upgraded them.
*/
declare
    object record;
begin
    for object in
        select case c.relkind when 'S' then 'sequence' when 'v' then 'view' else 'table' end as kind, c.oid::regclass::text as name
        from pg_class as c
        where c.relnamespace in ('postbus'::regnamespace, 'postbus_data'::regnamespace)
            and (
                c.relkind in ('r', 'p', 'v')
                -- Those of identity columns go with their tables.
                or (c.relkind = 'S' and not exists (select from pg_depend as d where d.objid = c.oid and d.deptype = 'i'))
            )
            and pg_get_userbyid(c.relowner) <> owner
        union all
        select 'type', t.oid::regtype::text
        from pg_type as t
        join pg_class as c on c.oid = t.typrelid and c.relkind = 'c'
        where t.typnamespace in ('postbus'::regnamespace, 'postbus_data'::regnamespace)
            and pg_get_userbyid(t.typowner) <> owner
        union all
        select 'function', p.oid::regprocedure::text
        from pg_proc as p
        where p.pronamespace in ('postbus'::regnamespace, 'postbus_data'::regnamespace)
            and pg_get_userbyid(p.proowner) <> owner
    loop
        execute format('alter %s %s owner to %I', object.kind, object.name, owner);
    end loop;
end
$$;

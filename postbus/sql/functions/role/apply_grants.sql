create or replace function postbus_data.apply_grants(stream_id integer)
returns void
language plpgsql
as $$
/*
Give what a stream consists of now to the role that owns what Postbus stores, so that all of its members can look after it, and other roles their rights
on it. Called when it gets something new.
*/
declare
    wanted record;
    owner_name name := (
        select r.rolname
        from pg_catalog.pg_class as c
        join pg_catalog.pg_roles as r on r.oid = c.relowner
        where c.oid = 'postbus_data.stream'::regclass
    );
begin
    if owner_name <> current_user then
        for wanted in select o.* from postbus_data.stream_objects(apply_grants.stream_id) as o loop
            execute pg_catalog.format('alter %s postbus_data.%s owner to %I', wanted.kind, wanted.name, owner_name);
        end loop;
    end if;
    for wanted in
        select g.role, g.may, o.kind, o.name, o.is_log
        from postbus_data.stream_grant as g
        -- A role may have been dropped.
        join pg_catalog.pg_roles as r on r.rolname = g.role
        cross join lateral postbus_data.stream_objects(apply_grants.stream_id) as o
        where (g.stream_id = apply_grants.stream_id or g.stream_id is null)
            and o.kind <> 'function'
    loop
        execute pg_catalog.format(
            'grant %s on %s postbus_data.%s to %I',
            case
                when wanted.kind = 'sequence' then case wanted.may when 'publish' then 'usage' else 'select' end
                when wanted.may <> 'publish' then 'select'
                when wanted.is_log then 'insert'
                else 'select, insert, update'
            end,
            wanted.kind, wanted.name, wanted.role
        );
    end loop;
end
$$;

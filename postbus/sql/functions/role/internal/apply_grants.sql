create or replace function postbus_data.apply_grants(stream_id integer)
returns void
language plpgsql
as $$
/*
Grant roles their rights on a stream's current functions and tables, and revoke everybody else's. Called whenever the stream
gets a new object.

A publisher may call the functions that publish to the stream, a consumer the one that receives from it. Consumers and readers
may read its log, because Spark uses COPY: a million messages in a second, where rows returned by a function would be
materialized first. Nobody may write to any table.
*/
declare
    wanted text;
begin
    for wanted in
        select format('revoke execute on function %s from public', o.id::regprocedure)
        from postbus_data.stream_objects(apply_grants.stream_id) as o
        join pg_proc as p on p.oid = o.id and p.proacl is null
        where o.kind = 'function'
        union all
        select format(
            'grant %s on %s %s to %I',
            case o.kind when 'table' then 'select' else 'execute' end, o.kind,
            case o.kind when 'table' then o.id::regclass::text else o.id::regprocedure::text end, r.rolname
        )
        from postbus_data.stream_objects(apply_grants.stream_id) as o
        join postbus_data.stream_grant as g on g.may = any (o.rights)
        -- A role may have been dropped.
        join pg_roles as r on r.rolname = g.role
        where (g.stream_id = apply_grants.stream_id or g.stream_id is null)
            and case o.kind
                when 'table' then not has_table_privilege(r.oid, o.id, 'select')
                else not has_function_privilege(r.oid, o.id, 'execute') or (select p.proacl is null from pg_proc as p where p.oid = o.id)
            end
    loop
        execute wanted;
    end loop;
end
$$;

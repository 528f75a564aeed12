create or replace function postbus_data.open_functions()
returns text[]
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
/*
The functions that any role with a grant may call: those that take a caller and check its rights, and a few that reveal nothing.
*/
    select array_agg(p.oid::regprocedure::text order by p.oid::regprocedure::text)
    from pg_proc as p
    where (
            p.pronamespace in ('postbus'::regnamespace, 'postbus_data'::regnamespace)
            and p.prosecdef
            and p.proargnames[p.pronargs] = 'caller'
        )
        or p.oid = any (array[
            'postbus.current_caller'::regproc,
            'postbus.partition_of'::regproc,
            'postbus.priority_of'::regproc,
            'postbus_data.pattern_regex'::regproc,
            'postbus_data.spark_check'::regproc
        ]::oid[])
$$;

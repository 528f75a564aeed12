create or replace function postbus_data.comment_functions()
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
/* Make \df+ show each public function's header. Called at the end of each install and upgrade. */
declare
    public_one record;
begin
    for public_one in
        select p.oid::regprocedure as signature, trim(e'\n ' from substring(p.prosrc from '/\*(.*?)\*/')) as header
        from pg_proc as p
        where p.pronamespace = 'postbus'::regnamespace
    loop
        execute format('comment on function %s is %L', public_one.signature, public_one.header);
    end loop;
end
$$;

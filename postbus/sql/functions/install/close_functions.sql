create or replace function postbus_data.close_functions()
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
/*
Let everybody call only the functions that find out for themselves what their caller may do, and those that tell nothing; all others are for members of the
role that owns Postbus. Functions of a stream are for the roles that were granted a right on it, see apply_grants. Called at the end of each install and
upgrade.
*/
declare
    opened text;
begin
    revoke execute on all functions in schema postbus, postbus_data from public;
    foreach opened in array postbus_data.open_functions() loop
        execute format('grant execute on function %s to public', opened);
    end loop;
    grant select on postbus_data.current_caller, postbus_data.migration, postbus_data.installation to public;
end
$$;

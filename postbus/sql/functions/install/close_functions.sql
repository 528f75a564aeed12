create or replace function postbus_data.close_functions()
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
/*
Let everybody call only the functions that check their caller's rights themselves, and those that reveal nothing. All others are
for members of the role that owns Postbus. The functions of a stream are for roles with a right on it, see apply_grants. Called
at the end of each install and upgrade.
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

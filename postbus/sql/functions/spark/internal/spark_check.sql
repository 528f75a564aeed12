create or replace function postbus_data.spark_check(system text)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
/*
Refuse to read on a server other than the one where the read was planned: a standby may lack messages (PB503), another system has other
ones (PB409).
*/
begin
    if pg_is_in_recovery() then
        raise exception using
            errcode = 'PB503',
            message = 'this server is a standby: it may lack messages',
            hint = 'let the URL lead every executor to the primary';
    end if;
    if system <> (select c.system_identifier::text from pg_control_system() as c) then
        raise exception using
            errcode = 'PB409',
            message = 'the URL leads this executor to another Postgres than the driver',
            hint = 'let it lead both to the same server';
    end if;
end
$$;

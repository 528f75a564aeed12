create or replace function postbus_data.spark_check(system text)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
/*
Refuse to read on a server other than the one on which the read was planned: a standby may lack messages (PB503), and another
system has other messages (PB409).
*/
begin
    if pg_is_in_recovery() then
        raise exception using
            errcode = 'PB503',
            message = 'this server is a standby: it may lack messages',
            hint = 'use a URL that reaches the primary from every executor';
    end if;
    if system <> (select c.system_identifier::text from pg_control_system() as c) then
        raise exception using
            errcode = 'PB409',
            message = 'the URL reaches a different Postgres from this executor than from the driver',
            hint = 'use a URL that reaches the same server from both';
    end if;
end
$$;

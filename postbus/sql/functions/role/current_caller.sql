create or replace function postbus.current_caller()
returns postbus.caller
language plpgsql
stable
as $$
/*
The role that calls, signed so that functions which act with the rights of their owner can trust it. It is the default of their last argument.

It runs with the caller's rights and settings: whatever a caller changes about it only yields a signature that no function accepts.
*/
begin
    return (select c.caller from postbus_data.current_caller as c);
end
$$;

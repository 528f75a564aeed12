create or replace function postbus.current_caller()
returns postbus.caller
language plpgsql
stable
as $$
/*
The calling role, signed so that functions that act with their owner's rights can trust it. It is the default of their last
argument.

It runs with the caller's rights and settings. Whatever a caller changes about it only yields a signature that no function
accepts.
*/
begin
    return (select c.caller from postbus_data.current_caller as c);
end
$$;

create or replace function postbus_data.has_right(caller postbus.caller, stream_id integer, variadic rights text[])
returns boolean
language plpgsql
stable
as $$
/*
Whether a caller has one of these rights on a stream. Members of the role that owns Postbus have all of them.

Called by functions that run as that owner, so here current_user is the owner. A signature made for another role, session or
transaction has no rights. Hot: only expressions, and a look at the grants only for callers that are not owners.
*/
#variable_conflict use_variable
declare
    secret bytea := (select k.secret from postbus_data.caller_key as k);
begin
    -- As in the view current_caller.
    if (
        caller.signature
        = sha256(secret || int4send(pg_backend_pid()) || timestamptz_send(transaction_timestamp()) || convert_to(caller.role, 'UTF8'::name) || secret)
    ) is not true then
        return false;
    end if;
    if pg_has_role(caller.role::name, current_user, 'usage') then
        return true;
    end if;
    return exists (
        select
        from postbus_data.stream_grant as g
        -- A role may have been dropped.
        join pg_roles as r on r.rolname = g.role
        where (g.stream_id = stream_id or g.stream_id is null)
            and g.may = any (rights)
            and pg_has_role(caller.role::name, r.oid, 'usage')
    );
end
$$;

create or replace function postbus_data.check_name(kind text, name text)
returns void
language plpgsql
immutable
as $$
/* Refuse a name that is not 1 to 63 of the characters A-Z a-z 0-9 _ - (PB400). Every name in Postbus is checked here. */
begin
    if name is null or name !~ '^[A-Za-z0-9_-]{1,63}$' then
        raise exception using
            errcode = 'PB400',
            message = format('%s name %s is not allowed', kind, coalesce('"' || left(name, 80) || '"', 'null')),
            hint = 'use 1 to 63 letters, digits, "_" or "-"';
    end if;
end
$$;

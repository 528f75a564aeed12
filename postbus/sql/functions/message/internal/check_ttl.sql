create or replace function postbus_data.check_ttl(ttl interval)
returns void
language plpgsql
immutable
as $$
/* Refuse a time to live that is out of range (PB400); null means none. */
begin
    if (ttl between interval '1 millisecond' and interval '3650 days') is false then
        raise exception using errcode = 'PB400', message = format('ttl = %s is not between 1 millisecond and 3650 days', ttl);
    end if;
end
$$;

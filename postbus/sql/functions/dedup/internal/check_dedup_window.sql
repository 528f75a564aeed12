create or replace function postbus_data.check_dedup_window(dedup_window interval)
returns void
language plpgsql
immutable
as $$
/* Refuse a window that is outside its range (PB400). Null is not checked. */
begin
    if dedup_window not between interval '1 second' and interval '30 days' then
        raise exception using
            errcode = 'PB400',
            message = format('dedup_window = %s is not between 1 second and 30 days', dedup_window);
    end if;
end
$$;

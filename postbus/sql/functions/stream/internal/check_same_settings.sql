create or replace function postbus_data.check_same_settings(what text, existing jsonb, wanted jsonb, defaults jsonb)
returns void
language plpgsql
immutable
as $$
/*
Refuse to take something that exists for what was to be created, if its settings differ. Settings that were to have their defaults
are not compared: nobody asked for them.

what    its kind and name, for the error.
Raises  PB409, with the settings that differ.
*/
declare
    differences text;
begin
    select string_agg(format('%s is %s, not %s', d.key, coalesce(existing ->> d.key, 'none'), coalesce(wanted ->> d.key, 'none')), '; ' order by d.key)
    into differences
    from jsonb_each(defaults) as d
    where wanted -> d.key <> d.value
        and wanted -> d.key <> existing -> d.key;
    if differences is not null then
        raise exception using
            errcode = 'PB409',
            message = format('%s exists with other settings: %s', what, differences),
            hint = 'alter it, or leave these settings out';
    end if;
end
$$;

create or replace function postbus_data.render(template text, names jsonb)
returns text
language plpgsql
immutable
as $$
/*
A template with the names in braces filled in. Names of streams are literals in it, and hold no braces.

Raises   PB500 for a name in the template that is not among names.
*/
declare
    name record;
    unknown text;
begin
    for name in select n.key, n.value from jsonb_each_text(names) as n loop
        template := replace(template, '{' || name.key || '}', name.value);
    end loop;
    unknown := substring(template from '\{[a-z_]+\}');
    if unknown is not null then
        raise exception using errcode = 'PB500', message = format('nothing is known of %s in a template', unknown);
    end if;
    return template;
end
$$;

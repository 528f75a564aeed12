create or replace function postbus_data.find_source(name text)
returns integer
language plpgsql
stable
as $$
/* The id of a source; raises PB404 when there is none. */
declare
    found_id integer := (select s.id from postbus_data.source as s where s.name = find_source.name);
begin
    if found_id is null then
        raise exception using
            errcode = 'PB404',
            message = format('source "%s" does not exist', name),
            hint = 'list_sources shows all';
    end if;
    return found_id;
end
$$;

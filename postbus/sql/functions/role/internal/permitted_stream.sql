create or replace function postbus_data.permitted_stream(caller postbus.caller, stream text, variadic rights text[])
returns integer
language plpgsql
stable
as $$
/* The id of a stream on which the caller has one of these rights. Raises PB403, PB404. */
declare
    id integer;
begin
    select s.id into id from postbus_data.stream as s where s.name = permitted_stream.stream;
    if id is null or not postbus_data.has_right(caller, id, variadic rights) then
        perform postbus_data.raise_not_permitted(caller, stream, rights[cardinality(rights)]);
    end if;
    return id;
end
$$;

create or replace function postbus_data.raise_not_permitted(caller postbus.caller, stream text, wanted text)
returns void
language plpgsql
stable
as $$
/*
Raise the error for a caller that lacks a right on a stream: PB403, or PB404 as for an unknown stream when it has no right there
at all.
*/
declare
    known_id integer := (select s.id from postbus_data.stream as s where s.name = raise_not_permitted.stream);
begin
    if known_id is null or not postbus_data.has_right(caller, known_id, 'publish', 'consume', 'read') then
        perform postbus_data.raise_unknown_stream(stream);
    end if;
    raise exception using
        errcode = 'PB403',
        message = format('role "%s" may not %s stream "%s"', caller.role, case wanted when 'publish' then 'publish to' else wanted end, stream),
        hint = format('the owner can allow it: select postbus.grant_stream(%L, %L, %L)', stream, caller.role, wanted);
end
$$;

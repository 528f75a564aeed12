create or replace function postbus_data.permitted_group(caller postbus.caller, stream text, "group" text)
returns postbus_data.consumer
language plpgsql
stable
as $$
/* The row of a group, if the caller may consume its stream. Raises PB403, PB404, and PB409 for a consumer that is not a group. */
declare
    found_group postbus_data.consumer;
begin
    found_group := (
        select c
        from postbus_data.consumer as c
        where c.stream_name = permitted_group.stream
            and c.name = permitted_group."group"
    );
    if found_group.id is null or not postbus_data.has_right(caller, found_group.stream_id, 'consume') then
        perform postbus_data.permitted_stream(caller, stream, 'consume');
    end if;
    return postbus_data.find_group(stream, "group");
end
$$;

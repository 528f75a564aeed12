create or replace function postbus_data.permitted_group(caller postbus.caller, stream text, "group" text)
returns postbus_data.consumer
language plpgsql
stable
as $$
/* The row of a group, if the caller may consume its stream. Raises PB403, PB404, and PB409 for a consumer that is not a group. */
begin
    perform postbus_data.permitted_consumer(caller, stream, "group");
    return postbus_data.find_group(stream, "group");
end
$$;

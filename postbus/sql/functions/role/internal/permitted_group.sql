create or replace function postbus_data.permitted_group(caller postbus.caller, stream text, "group" text)
returns postbus_data.consumer
language plpgsql
stable
as $$
/* The row of a group whose stream the caller may consume. Raises PB403, PB404, PB409 when it is a consumer that is not read by position. */
begin
    perform postbus_data.permitted_consumer(caller, stream, "group");
    return postbus_data.find_group(stream, "group");
end
$$;

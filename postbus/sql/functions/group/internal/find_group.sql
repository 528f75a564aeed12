create or replace function postbus_data.find_group(stream text, "group" text)
returns postbus_data.consumer
language plpgsql
stable
as $$
/* The row of a group. Raises PB404 for an unknown one, PB409 for a consumer that is not a group. */
declare
    reader postbus_data.consumer;
begin
    reader := (select c from postbus_data.consumer as c where c.stream_name = find_group.stream and c.name = find_group."group");
    if reader.id is null then
        perform postbus_data.raise_unknown_consumer(stream, "group", true);
    elsif not reader.is_group then
        raise exception using
            errcode = 'PB409',
            message = format('"%s" of stream "%s" is a consumer, not a group', "group", stream),
            hint = 'receive from it, or create a group of another name';
    end if;
    return reader;
end
$$;

create or replace function postbus_data.raise_cannot_publish(stream text, data_type text, expected_type text)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
/*
Raise the error for a stream that cannot be published to: PB404 when it does not exist, PB409 when it has another data type,
PB507 when it is full.
*/
begin
    perform postbus_data.stream_id(stream);
    if data_type = coalesce(expected_type, data_type) then
        raise exception using
            errcode = 'PB507',
            message = format('stream "%s" is full: it has reached max_messages or max_storage, and nothing may be dropped', stream),
            hint = 'consume or purge messages, or raise the limit; publishing works again once there is room';
    end if;
    raise exception using
        errcode = 'PB409',
        message = format('stream "%s" holds %s, not %s', stream, data_type, expected_type);
end
$$;

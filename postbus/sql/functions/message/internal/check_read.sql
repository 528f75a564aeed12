create or replace function postbus_data.check_read(source postbus_data.stream, max_messages integer, key text, expected_type text)
returns void
language plpgsql
immutable
as $$
/* Refuse an invalid read: PB400 for arguments out of range, PB409 when the stream has another data type. */
begin
    if max_messages is null or max_messages not between 1 and 10000 then
        raise exception using
            errcode = 'PB400',
            message = format('max_messages = %s is not between 1 and 10000', coalesce(max_messages::text, 'null'));
    end if;
    if postbus_data.key_problem(key) is not null then
        raise exception using
            errcode = 'PB400',
            message = 'no message can have that key: ' || postbus_data.key_problem(key),
            hint = 'for "*" and ">" use key_pattern';
    end if;
    if expected_type <> source.data_type then
        raise exception using
            errcode = 'PB409',
            message = format('stream "%s" holds %s, not %s', source.name, source.data_type, expected_type);
    end if;
end
$$;

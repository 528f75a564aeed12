create or replace function postbus_data.refuse_entry(stream text, data_type text, expected_type text)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
/* Raise the error for a stream that cannot be entered: PB404 when it does not exist, PB409 when it holds another type of data. */
begin
    perform postbus_data.stream_id(stream);
    raise exception using
        errcode = 'PB409',
        message = format('stream "%s" holds %s, not %s', stream, data_type, expected_type);
end
$$;

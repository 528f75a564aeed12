create or replace function postbus_data.raise_unknown_stream(stream text)
returns void
language plpgsql
stable
as $$
/* Raise PB404 for a stream that does not exist, or that the caller must not know about. */
begin
    raise exception using
        errcode = 'PB404',
        message = format('stream "%s" does not exist', stream),
        schema = stream,
        constraint = 'unknown_stream',
        hint = format('create it with: select postbus.create_stream(%L)', stream);
end
$$;

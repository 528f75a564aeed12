create or replace function postbus_data.check_push_secret(secret text)
returns void
language plpgsql
as $$
/* Raise PB400 for what is not a secret of Standard Webhooks. The message does not repeat it. */
begin
    if (secret ~ '^whsec_[A-Za-z0-9+/]{32,86}={0,2}$') is not true then
        raise exception using
            errcode = 'PB400',
            message = 'secret is not whsec_ and the base64 of 24 to 64 bytes',
            hint = 'the library makes one: leave it out';
    end if;
end
$$;

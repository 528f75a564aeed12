create or replace function postbus_data.raise_not_an_ack_id(given text)
returns text
language plpgsql
immutable
as $$
/* Raise PB400 for what is not an ack id. */
begin
    raise exception using
        errcode = 'PB400',
        message = format('%s is not an ack id', coalesce(to_json(given)::text, 'null')),
        hint = 'give the ack_id of a delivery, or the token of a range, as it was received';
end
$$;

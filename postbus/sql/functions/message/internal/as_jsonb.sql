create or replace function postbus_data.as_jsonb(data text)
returns jsonb
language plpgsql
immutable
as $$
/*
JSON in searchable form, or null where that is impossible: jsonb accepts no \u0000, no unpaired surrogates and not every number.
A message with such data passes no filter of its content. An error would block the consumer at this message.
*/
begin
    return data::jsonb;
exception
    when others then
        return null;
end
$$;

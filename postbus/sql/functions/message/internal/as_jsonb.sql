create or replace function postbus_data.as_jsonb(data text)
returns jsonb
language plpgsql
immutable
as $$
/*
JSON in the form that can be searched, or null where there is none: jsonb takes no \u0000, no halves of surrogate pairs and not every number. A message
with such data passes no filter of its content. An error would keep all that comes behind it from the consumer, for ever.
*/
begin
    return data::jsonb;
exception
    when others then
        return null;
end
$$;

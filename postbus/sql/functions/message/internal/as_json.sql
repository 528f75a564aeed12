create or replace function postbus_data.as_json(data text, place integer)
returns json
language plpgsql
immutable
as $$
/* The text as json, kept exactly; raises PB400 with the message's place in its batch when it is not JSON. */
begin
    return data::json;
exception when invalid_text_representation then
    raise exception using
        errcode = 'PB400',
        message = postbus_data.message_name(place) || ' is not valid JSON',
        detail = sqlerrm,
        hint = 'a string needs double quotes of its own: ''"hello"''';
end
$$;

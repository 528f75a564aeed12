create or replace function postbus_data.as_json_array(data text[])
returns json[]
language plpgsql
immutable
as $$
/* The texts as json, all at once. Only if that fails are they tried one by one, to name the invalid one. */
begin
    return data::json[];
exception when invalid_text_representation then
    perform postbus_data.as_json(u.item, u.place::integer)
    from unnest(data) with ordinality as u (item, place)
    order by u.place;
    raise;
end
$$;

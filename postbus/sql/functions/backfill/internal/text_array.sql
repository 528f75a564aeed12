create or replace function postbus_data.text_array(list jsonb)
returns text[]
language sql
immutable
set search_path = pg_catalog, pg_temp
as $$
/* The texts of a JSON array; null for JSON null. */
    select array_agg(t.text order by t.place)
    from jsonb_array_elements_text(case jsonb_typeof(list) when 'array' then list else '[]' end) with ordinality as t (text, place)
$$;

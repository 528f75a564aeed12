create or replace function postbus_data.channel_rank(pattern text)
returns text
language sql
immutable
as $$
/* Sorts patterns: a token is more specific than "*", that is more than ">", and earlier tokens count first. */
    select string_agg(case t.token when '*' then '1' when '>' then '2' else '0' end, '' order by t.place)
    from unnest(string_to_array(pattern, '.')) with ordinality as t (token, place)
$$;

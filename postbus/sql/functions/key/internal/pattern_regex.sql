create or replace function postbus_data.pattern_regex(pattern text)
returns text
language plpgsql
immutable parallel safe
as $$
/*
The regular expression for a key pattern, by the rules of NATS: "*" is one token, ">" one or more at the end.

Raises   PB400 for a pattern with an empty token, a wildcard inside a token, or ">" before the end.
*/
declare
    tokens text[] := string_to_array(pattern, '.');
    token text;
    regex text := '';
begin
    if pattern is null then
        return null;
    end if;
    for position in 1 .. greatest(cardinality(tokens), 1) loop
        token := tokens[position];
        if token is null
            or token = ''
            or token ~ '[\x01-\x20\x7f]'
            or (token ~ '[*>]' and token not in ('*', '>'))
            or (token = '>' and position < cardinality(tokens))
        then
            raise exception using
                errcode = 'PB400',
                message = format('key pattern "%s" is not allowed', left(pattern, 300)),
                hint = 'tokens are separated by "."; "*" stands for one token and ">", at the end, for one or more';
        end if;
        regex := regex || case when position > 1 then '[.]' else '^' end || case token
            when '*' then '[^.]+'
            when '>' then '.+'
            -- Each character by itself in brackets needs no escape, but for "^" and the backslash, which is written as a
            -- number because its meaning in a literal depends on a setting.
            else (
                select string_agg(case when c in ('^', chr(92)) then chr(92) || c else '[' || c || ']' end, '' order by n)
                from regexp_split_to_table(token, '') with ordinality as s (c, n)
            )
        end;
    end loop;
    return regex || '$';
end
$$;

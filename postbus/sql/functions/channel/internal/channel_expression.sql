create or replace function postbus_data.channel_expression(key text, tokens integer)
returns text
language sql
immutable
as $$
/*
What channel_of says, as an expression for an index and for the statements that use it.

key     the expression of the key.
tokens  null, for a stream without channels, leaves the key as it is.
*/
    select case
        when tokens is null then key
        when tokens = 1 then format('pg_catalog.split_part(%s, ''.''::text, 1)', key)
        else (
            select format(
                'pg_catalog.rtrim(%s, ''.''::text)', string_agg(format('pg_catalog.split_part(%s, ''.''::text, %s)', key, n), ' || ''.''::text || ' order by n)
            )
            from generate_series(1, tokens) as n
        )
    end
$$;

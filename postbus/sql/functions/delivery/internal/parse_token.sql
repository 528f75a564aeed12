create or replace function postbus_data.parse_token(token text)
returns bigint
language sql
immutable
as $$
/* A lease's token from its 16 hexadecimal digits; null when it has others. */
    select case when token ~ '^[0-9a-f]{16}$' then ('x' || token)::bit(64)::bigint end
$$;

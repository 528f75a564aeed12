create or replace function postbus_data.tokens_are_valid(key text)
returns boolean
language sql
immutable parallel safe
as $$
/*
Whether a key has neither empty tokens nor invalid characters: control characters, space, "*" and ">".

Keys joined with "." are valid exactly when each of them is, so one call checks a batch.
*/
    select key !~ '[\x01-\x20\x7f*>]' and strpos('.' || key || '.', '..') = 0
$$;

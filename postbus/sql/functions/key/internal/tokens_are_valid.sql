create or replace function postbus_data.tokens_are_valid(key text)
returns boolean
language sql
immutable parallel safe
as $$
/*
Whether a key has neither empty tokens nor characters that are not allowed: controls, space, "*" and ">".

Keys joined with "." are valid exactly when each of them is, so a batch is checked with one call.
*/
    select key !~ '[\x01-\x20\x7f*>]' and strpos('.' || key || '.', '..') = 0
$$;

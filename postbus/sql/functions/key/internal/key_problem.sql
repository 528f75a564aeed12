create or replace function postbus_data.key_problem(key text)
returns text
language sql
immutable parallel safe
as $$
/* Why a key is invalid, or null if it is valid. Null is a message without a key. */
    select case
        when key is null then null
        when key = '' then 'its key is empty (leave the key out for a message without one)'
        when length(key) > 255 then format('its key has %s characters, and 255 are allowed', length(key))
        when key ~ '[\x01-\x20\x7f*>]' then format('its key "%s" has a space, control character, "*" or ">"', key)
        when strpos('.' || key || '.', '..') > 0 then format('its key "%s" has an empty token', key)
    end
$$;

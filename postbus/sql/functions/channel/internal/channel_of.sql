create or replace function postbus_data.channel_of(key text, tokens integer)
returns text
language sql
immutable parallel safe
as $$
/* The channel of a key in a stream with that many channel_tokens: so many leading tokens, or the whole key if it has fewer. Written to be inlined. */
    select case tokens
        when 1 then split_part(key, '.', 1)
        else array_to_string((string_to_array(key, '.'))[1:tokens], '.')
    end
$$;

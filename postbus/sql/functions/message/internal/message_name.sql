create or replace function postbus_data.message_name(place integer)
returns text
language sql
immutable parallel safe
as $$
/* How an error speaks of a message: by its place in the batch, counted from 1, or simply as "message". */
    select coalesce('message ' || place::text, 'message')
$$;

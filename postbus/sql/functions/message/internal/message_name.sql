create or replace function postbus_data.message_name(place integer)
returns text
language sql
immutable parallel safe
as $$
/* What errors call a message: its place in the batch, counted from 1, or just "message". */
    select coalesce('message ' || place::text, 'message')
$$;

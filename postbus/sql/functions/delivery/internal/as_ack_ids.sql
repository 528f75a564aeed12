create or replace function postbus_data.as_ack_ids(given text)
returns text[]
language sql
immutable
as $$
/* Ack ids from one of them, or from the text of an array; null from null. */
    select case when given like '{%' then given::text[] when given is not null then array[given] end
$$;

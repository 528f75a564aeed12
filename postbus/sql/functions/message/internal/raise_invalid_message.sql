create or replace function postbus_data.raise_invalid_message(
    entry postbus_data.publish_target,
    place integer,
    key text,
    data text,
    headers jsonb,
    bytes bytea
)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
/*
Raise the error for an invalid message, or return if it is valid.

The publishing functions do a cheap check of their own and call this only to name the message and the reason.
*/
declare
    name text := postbus_data.message_name(place);
    size integer := octet_length(coalesce(bytes, convert_to(data, 'UTF8')));
    problem text := postbus_data.key_problem(key);
begin
    if size > entry.max_message_bytes then
        raise exception using
            errcode = 'PB413',
            message = format('%s has %s bytes of data, and the stream allows %s', name, size, entry.max_message_bytes),
            hint = 'raise max_message_bytes of the stream, or store the content elsewhere and send a reference';
    end if;
    problem := case
        when problem is not null then problem
        when entry.data_type = 'bytes' and data is not null then 'it has text data, and the stream holds bytes'
        when entry.data_type <> 'bytes' and bytes is not null then 'it has bytes, and the stream holds ' || entry.data_type
        when data is null and bytes is null then case entry.data_type
            when 'json' then 'its data is missing (JSON null is written ''null'')'
            else 'its data is missing'
        end
        when jsonb_typeof(headers) <> 'object' then 'its headers are not a JSON object'
        when headers @? 'strict $.* ? (@.type() != "string")' then 'a header''s value is not a string'
    end;
    if problem is not null then
        raise exception using errcode = 'PB400', message = format('%s is not allowed: %s', name, problem);
    end if;
end
$$;

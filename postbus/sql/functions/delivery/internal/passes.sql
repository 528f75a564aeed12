create or replace function postbus_data.passes(reader postbus_data.consumer, message postbus.delivery)
returns boolean
language sql
immutable
as $$
/* Whether a message passes a consumer's filter. The functions of segments contain this expression: see create_claim_function. */
    select (reader.filter_key_regex is null or coalesce(message.key ~ reader.filter_key_regex, false))
        and (reader.filter_headers is null or coalesce(message.headers @> reader.filter_headers, false))
        and (reader.filter_headers_not is null or not coalesce(message.headers @> any (reader.filter_headers_not), false))
        and (
            reader.filter_data is null
            or coalesce(jsonb_path_query_first(postbus_data.as_jsonb(message.data), reader.filter_data, '{}', true), 'false') not in ('false', 'null')
        )
$$;

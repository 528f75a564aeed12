create or replace function postbus_data.set_filter(
    settings postbus_data.consumer,
    key_pattern text,
    headers jsonb,
    headers_not jsonb,
    data_path text
)
returns postbus_data.consumer
language plpgsql
stable
as $$
/* Check the given parts of a filter and put them into a consumer's settings; null leaves a part unchanged. Raises PB400. */
declare
    data_type text;
begin
    if key_pattern is not null then
        settings.filter_key_regex := postbus_data.pattern_regex(key_pattern);
        settings.filter_key_pattern := key_pattern;
    end if;
    if jsonb_typeof(coalesce(headers, '{}')) <> 'object' or coalesce(headers, '{}') @? 'strict $.* ? (@.type() != "string")' then
        raise exception using errcode = 'PB400', message = 'filter_headers is not a JSON object whose values are strings';
    end if;
    if jsonb_typeof(coalesce(headers_not, '{}')) <> 'object' or coalesce(headers_not, '{}') @? 'strict $.* ? (@.type() != "string")' then
        raise exception using errcode = 'PB400', message = 'filter_headers_not is not a JSON object whose values are strings';
    end if;
    settings.filter_headers := coalesce(headers, settings.filter_headers);
    if headers_not is not null then
        settings.filter_headers_not := array(
            select jsonb_build_object(h.key, h.value) from jsonb_each(headers_not) as h
        );
    end if;
    if data_path is not null then
        select s.data_type into data_type from postbus_data.stream as s where s.id = settings.stream_id;
        if data_type <> 'json' then
            raise exception using errcode = 'PB400', message = format('filter_data needs a json stream, and this one holds %s', data_type);
        end if;
        begin
            settings.filter_data := data_path::jsonpath;
        exception when others then
            raise exception using errcode = 'PB400', message = format('filter_data is not a JSON path: %s', sqlerrm);
        end;
    end if;
    return settings;
end
$$;

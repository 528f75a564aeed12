create or replace function postbus_data.raise_unknown_consumer(stream text, consumer text, is_group boolean)
returns void
language plpgsql
stable
as $$
/* Raise PB404 for a consumer or group that does not exist, or for its stream. */
declare
    kind text := case when is_group then 'group' else 'consumer' end;
begin
    perform postbus_data.stream_id(stream);
    raise exception using
        errcode = 'PB404',
        message = format('%s "%s" of stream "%s" does not exist', kind, consumer, stream),
        schema = stream,
        table = consumer,
        constraint = 'unknown_' || kind,
        hint = format('create it with: select postbus.create_%s(%L, %L)', kind, stream, consumer);
end
$$;

create or replace function postbus_data.schedule(
    entry postbus_data.publish_target,
    place integer,
    deliver_at timestamptz,
    ttl interval,
    key text,
    data text,
    headers jsonb,
    bytes bytea,
    priority integer default null
)
returns bigint
language plpgsql
as $$
/*
Store a message until its time. It is checked as if it were published now.

Returns  its schedule id.
Raises   as publish, and PB400 for an infinite time.
Touches  scheduled (insert).
*/
declare
    new_id bigint;
begin
    perform postbus_data.raise_invalid_message(entry, place, key, data, headers, bytes);
    if entry.data_type = 'json' then
        perform postbus_data.as_json(data, place);
    end if;
    if not isfinite(deliver_at) then
        raise exception using errcode = 'PB400', message = format('deliver_at = %s is not a time', deliver_at);
    end if;
    insert into postbus_data.scheduled (stream_id, deliver_at, ttl, key, data, bytes, headers, priority)
    values (entry.stream_id, deliver_at, ttl, key, data, bytes, headers, coalesce(priority, 4))
    returning id into new_id;
    return new_id;
end
$$;

create or replace function postbus.publish(
    stream text,
    key text default null,
    data json default null,
    headers jsonb default null,
    expected_type text default null,
    ttl interval default null,
    deliver_at timestamptz default null,
    dedup_id text default null,
    priority integer default null,
    caller postbus.caller default postbus.current_caller()
)
returns bigint
language sql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Publish one message whose data is of type json. All else is as in the form that takes text, which untyped literals choose.

Returns, raises, touches, locks  as publish of text does.
*/
    select postbus.publish(stream, key, data::text, headers, null::bytea, expected_type, ttl, deliver_at, dedup_id, priority, caller)
$$;

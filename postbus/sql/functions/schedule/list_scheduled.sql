create or replace function postbus.list_scheduled(
    stream text,
    key_pattern text default null,
    after_at timestamptz default null,
    after_id bigint default null,
    max_messages integer default 100,
    caller postbus.caller default postbus.current_caller()
)
returns table (
    id bigint,
    deliver_at timestamptz,
    scheduled_at timestamptz,
    ttl interval,
    key text,
    data text,
    bytes bytea,
    headers jsonb,
    priority integer
)
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
The scheduled messages of a stream, the next one due first. Times of recurring schedules are not among them; see list_schedules.

after_at, after_id  only messages after this one: the last of the previous page.

Raises   PB400 for an argument out of range or an invalid pattern, PB403 without the right to publish, PB404 for an unknown
         stream.
*/
#variable_conflict use_column
declare
    listed integer := postbus_data.permitted_stream(caller, stream, 'publish');
    regex text := postbus_data.pattern_regex(key_pattern);
begin
    if max_messages is null or max_messages not between 1 and 10000 then
        raise exception using
            errcode = 'PB400',
            message = format('max_messages = %s is not between 1 and 10000', coalesce(max_messages::text, 'null'));
    end if;
    return query
    select s.id, s.deliver_at, s.scheduled_at, s.ttl, s.key, s.data, s.bytes, s.headers, s.priority
    from postbus_data.scheduled as s
    where s.stream_id = listed
        and s.schedule_id is null
        and (after_at is null or (s.deliver_at, s.id) > (after_at, coalesce(after_id, 0)))
        and (regex is null or s.key ~ regex)
    order by s.deliver_at, s.id
    limit max_messages;
end
$$;

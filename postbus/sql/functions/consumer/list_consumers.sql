create or replace function postbus.list_consumers(stream text, caller postbus.caller default postbus.current_caller())
returns setof postbus.consumer_info
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
The consumers of a stream and their settings, in order of their names.

Raises   PB403 without the right to consume, PB404 for an unknown stream.
*/
declare
    listed integer := postbus_data.permitted_stream(caller, stream, 'consume');
begin
    return query
    select
        c.stream_name, c.name, c.id, c.is_group, c.paused, c.created_at, c.backoff, c.backoff_factor, c.backoff_cap, c.backoff_jitter,
        c.filter_key_pattern, c.filter_headers,
        (select jsonb_object_agg(h.key, h.value) from unnest(c.filter_headers_not) as p cross join lateral jsonb_each(p) as h),
        c.filter_data::text,
        -- <consumer settings: columns>
        c.ordering, c.ack_wait, c.max_ack_pending, c.max_deliver, c.retain_dead, c.max_per_key, c.max_waiting, c.on_dead, c.on_expired,
        c.keep_unread, c.expire_after, c.keep_history, c.dead_letters_to, c.ageing, c.fair
        -- </consumer settings>
    from postbus_data.consumer as c
    where c.stream_id = listed
    order by c.name;
end
$$;

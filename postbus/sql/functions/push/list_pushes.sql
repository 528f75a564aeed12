create or replace function postbus.list_pushes(
    stream text default null,
    consumer text default null,
    caller postbus.caller default postbus.current_caller()
)
returns setof postbus.push_info
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Endpoints of push consumers and how they do: of all streams that the caller may consume, of one, or that of one consumer. The values of
headers and the secrets are not shown.

Raises   PB403 without the right to consume, PB404 for an unknown stream or consumer.
*/
#variable_conflict use_variable
declare
    only_id integer := case
        when consumer is not null then (postbus_data.permitted_consumer(caller, stream, consumer)).id
    end;
    only_stream integer := case when stream is not null then postbus_data.permitted_stream(caller, stream, 'consume') end;
begin
    return query
    select
        c.stream_name, c.name, p.url,
        array(select h.name from jsonb_object_keys(p.headers) as h (name) order by h.name),
        p.mode, p.batch_size, p.timeout, p.concurrency, p.max_rate, p.retry_schedule, p.permanent_statuses, p.keep_successes,
        (
            select count(*)
            from postbus_data.push_secret as k
            where k.consumer_id = p.consumer_id
                and (k.valid_until is null or k.valid_until > clock_timestamp())
        )::integer,
        case
            when p.paused_reason is not null or c.paused then 'paused'
            when s.rests_until is not null then 'resting'
            else 'active'
        end,
        case
            when p.paused_reason is not null then p.paused_reason
            when c.paused then 'the consumer is paused'
            when s.rests_until is not null then s.rest_reason
        end,
        s.rests_until, s.first_failure_at, s.last_failure_at, s.last_success_at, s.last_error, p.created_at
    from postbus_data.push as p
    join postbus_data.consumer as c on c.id = p.consumer_id
    left join lateral postbus_data.push_state_of(p.consumer_id) as s on true
    where (only_id is null or c.id = only_id)
        and (only_stream is null or c.stream_id = only_stream)
        and (only_stream is not null or postbus_data.has_right(caller, c.stream_id, 'consume'))
    order by c.stream_name, c.name;
end
$$;

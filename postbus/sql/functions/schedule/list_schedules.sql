create or replace function postbus.list_schedules(
    stream text default null,
    name text default null,
    caller postbus.caller default postbus.current_caller()
)
returns setof postbus.schedule_info
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Recurring schedules, with their last five runs: of a stream, or of all that the caller may publish to or read; or only that with a name.

Raises   PB403 without a right on the stream, PB404 for an unknown stream.
*/
#variable_conflict use_variable
declare
    only_id integer := case when stream is not null then postbus_data.permitted_stream(caller, stream, 'publish', 'consume', 'read') end;
begin
    return query
    select
        t.name, s.name, s.cron, s.every, s.time_zone, s.key, s.data, s.bytes, s.headers, s.ttl, s.catch_up, s.max_catch_up, s.paused, s.problem,
        s.created_at, t.data_type, clock_timestamp(),
        coalesce(
            (
                select jsonb_agg(
                    jsonb_build_object('occurrence', r.occurrence, 'published_at', r.published_at, 'seq', r.seq) order by r.n desc
                )
                from (
                    select run.* from postbus_data.schedule_run as run where run.schedule_id = s.id order by run.n desc limit 5
                ) as r
            ),
            '[]'
        ),
        s.priority
    from postbus_data.schedule as s
    join postbus_data.stream as t on t.id = s.stream_id
    where (only_id is null or s.stream_id = only_id)
        and (name is null or s.name = name)
        and (only_id is not null or postbus_data.has_right(caller, s.stream_id, 'publish', 'consume', 'read'))
    order by t.name, s.name;
end
$$;

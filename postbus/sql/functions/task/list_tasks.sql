create or replace function postbus.list_tasks(stream text default null)
returns setof postbus.task_info
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
The tasks in the background, of one stream or of all, the newest first: those that run, and those that ended within a week.

done_count is how many messages were moved so far, of about total_estimate; null: that is not known.

Raises   PB404 for an unknown stream.
*/
#variable_conflict use_variable
declare
    only_id integer := case when stream is not null then postbus_data.stream_id(stream) end;
begin
    return query
    select
        t.id, c.stream_name, c.name, t.kind, t.state, t.done_count, t.total_estimate, t.rate, t.key_pattern, t.reason_like, t.to_stream,
        t.last_error, t.created_by, t.created_at, t.noted_at, t.ended_at
    from postbus_data.task as t
    join postbus_data.consumer as c on c.id = t.consumer_id
    where only_id is null
        or c.stream_id = only_id
    order by t.id desc
    limit 1000;
end
$$;

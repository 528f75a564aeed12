create or replace function postbus.cancel_task(stream text, id bigint)
returns boolean
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
End a task in the background. What it has moved stays moved. It waits for the step at hand.

Returns  whether it was running.
Raises   PB404 for an unknown stream, or a task that is not one of the stream's.
Touches  task (update).
*/
#variable_conflict use_variable
declare
    only_id integer := postbus_data.stream_id(stream);
    was text;
begin
    select t.state
    into was
    from postbus_data.task as t
    join postbus_data.consumer as c on c.id = t.consumer_id
    where t.id = id
        and c.stream_id = only_id
    for update of t;
    if was is null then
        raise exception using
            errcode = 'PB404', message = format('task %s of stream "%s" does not exist', coalesce(id::text, 'null'), stream),
            hint = 'list them with: select * from postbus.list_tasks()';
    end if;
    update postbus_data.task as t set state = 'cancelled', ended_at = clock_timestamp() where t.id = id and t.state = 'running';
    return was = 'running';
end
$$;

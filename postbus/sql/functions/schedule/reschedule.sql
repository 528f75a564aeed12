create or replace function postbus.reschedule(
    stream text,
    ids bigint[],
    deliver_at timestamptz,
    caller postbus.caller default postbus.current_caller()
)
returns integer
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Give scheduled messages another time. A past time publishes them at the next sweep.

Returns  how many were rescheduled; a message that has been published is not counted.
Raises   PB400 for a missing or infinite time, PB403 without the right to publish, PB404 for an unknown stream.
Touches  scheduled (update).
*/
#variable_conflict use_column
declare
    moved integer;
begin
    if isfinite(reschedule.deliver_at) is not true then
        raise exception using errcode = 'PB400', message = format('deliver_at = %s is not a time', coalesce(reschedule.deliver_at::text, 'null'));
    end if;
    update postbus_data.scheduled as s
    set deliver_at = reschedule.deliver_at
    where s.stream_id = postbus_data.permitted_stream(caller, stream, 'publish')
        and s.id = any (ids);
    get diagnostics moved = row_count;
    return moved;
end
$$;

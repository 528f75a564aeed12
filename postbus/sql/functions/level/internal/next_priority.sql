create or replace function postbus_data.next_priority(reader postbus_data.consumer)
returns integer
language plpgsql
volatile
as $$
/*
The priority of the messages that a consumer is given next: those that are available at lower levels wait. Null when that is not known: with ageing, in
a group, and where there are no levels.
*/
declare
    lane integer;
    horizon bigint;
begin
    if reader.is_group
        or reader.ageing is not null
        or not postbus_data.has_levels(pg_sequence_last_value(to_regclass('postbus_data.layout_' || reader.stream_id)))
    then
        return null;
    end if;
    horizon := postbus_data.horizon_of(reader.stream_id);
    foreach lane in array postbus_data.lanes(reader.stream_id) loop
        if postbus_data.has_due(reader.id, reader.epoch, lane)
            or exists (select from postbus_data.lane_work(reader, lane, horizon, true) as w where w.head_at is not null)
        then
            return postbus.priority_of(lane);
        end if;
    end loop;
    return null;
end
$$;

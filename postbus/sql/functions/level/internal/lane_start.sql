create or replace function postbus_data.lane_start(stream_id integer, lane integer)
returns bigint
language sql
stable
as $$
/*
A seq below all messages of a level that can be seen. A publisher that is still open may have used the level first, at a lower seq: whoever reads on
from here looks at the horizon before, and takes the lower one.
*/
    select coalesce(min(l.since_seq), 0)
    from postbus_data.level as l
    where l.stream_id = lane_start.stream_id
        and postbus_data.lane_of(l.priority) = lane_start.lane
        and lane_start.lane > 0
$$;

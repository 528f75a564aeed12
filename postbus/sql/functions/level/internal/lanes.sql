create or replace function postbus_data.lanes(stream_id integer)
returns integer[]
language sql
stable
as $$
/* Where the partitions of each level in use begin (see lane_of), that of the highest level first. Level 4 is always among them. */
    select array_agg(postbus_data.lane_of(l.priority) order by l.priority desc)
    from (
        select u.priority from postbus_data.level as u where u.stream_id = lanes.stream_id
        union
        select 4
    ) as l
$$;

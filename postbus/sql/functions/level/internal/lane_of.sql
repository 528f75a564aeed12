create or replace function postbus_data.lane_of(priority integer)
returns integer
language sql
immutable parallel safe
as $$
/*
Where the partitions of a level begin: partition p of level 7 is 700000000 + p. Level 4, the default, begins at 0, and the levels below it are one
up (level 0 at 100000000), so that all levels above the default lie from 500000000 on. Written to be inlined.
*/
    select case when priority < 4 then priority + 1 when priority > 4 then priority else 0 end * 100000000
$$;

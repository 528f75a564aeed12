create or replace function postbus.priority_of(partition integer)
returns integer
language sql
immutable parallel safe
as $$
/* The priority of the messages of a partition: each level has partition numbers of its own, see lane_of. Written to be inlined. */
    select case when partition >= 500000000 then partition / 100000000 when partition >= 100000000 then partition / 100000000 - 1 else 4 end
$$;

create or replace function postbus_data.first_segment(stream_id integer, after_seq bigint)
returns postbus_data.segment
language sql
volatile
as $$
/* The first segment that has messages above a seq, or may get some: its partitions are those that a consumer which starts there begins with. */
    select g
    from postbus_data.segment as g
    where g.stream_id = first_segment.stream_id
        and (g.sealed_at is null or g.last_seq > first_segment.after_seq)
    order by g.number
    limit 1
$$;

create or replace function postbus_data.first_segment(stream_id integer, after_seq bigint)
returns postbus_data.segment
language sql
volatile
as $$
/* The first segment that has, or may get, messages above a seq. A consumer that starts there begins with its partitions. */
    select g
    from postbus_data.segment as g
    where g.stream_id = first_segment.stream_id
        and (g.sealed_at is null or g.last_seq > first_segment.after_seq)
    order by g.number
    limit 1
$$;

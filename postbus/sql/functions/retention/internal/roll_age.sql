create or replace function postbus_data.roll_age(stream postbus_data.stream)
returns interval
language sql
immutable
as $$
/* The age at which a segment is rolled. Only whole segments free space, so an age limit is kept to within a tenth of it. */
    select least(
        stream.segment_age,
        case when stream.retain_up_to is not null then greatest(interval '1 second', stream.retain_up_to / 10) end
    )
$$;

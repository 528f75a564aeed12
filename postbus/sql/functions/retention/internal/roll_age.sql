create or replace function postbus_data.roll_age(stream postbus_data.stream)
returns interval
language sql
immutable
as $$
/* How old a segment becomes: space is freed by whole ones, so that a bound on age is kept to a tenth of it. */
    select least(
        stream.segment_age,
        case when stream.retain_up_to is not null then greatest(interval '1 second', stream.retain_up_to / 10) end
    )
$$;

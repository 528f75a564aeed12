create or replace function postbus_data.check_limits(
    partitions integer,
    max_message_bytes integer,
    segment_bytes bigint,
    segment_age interval
)
returns void
language plpgsql
immutable
as $$
/* Refuse stream settings out of range (PB400). Null is not checked: it means "unchanged". */
declare
    problem text;
begin
    problem := case
        when partitions not between 1 and 1024
            then format('partitions = %s is not between 1 and 1024', partitions)
        when max_message_bytes not between 1 and 268435456
            then format('max_message_bytes = %s is not between 1 and 268435456 (256 MiB)', max_message_bytes)
        when segment_bytes not between 65536 and 1099511627776
            then format('segment_bytes = %s is not between 65536 (64 KiB) and 1099511627776 (1 TiB)', segment_bytes)
        when segment_age not between interval '1 second' and interval '3650 days'
            then format('segment_age = %s is not between 1 second and 3650 days', segment_age)
    end;
    if problem is not null then
        raise exception using errcode = 'PB400', message = problem;
    end if;
end
$$;

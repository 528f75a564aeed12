create or replace function postbus_data.check_retention(
    retain_up_to interval,
    retain_at_least interval,
    max_messages bigint,
    max_storage bigint,
    when_full text
)
returns void
language plpgsql
immutable
as $$
/* Refuse retention settings out of range (PB400). Null is not checked. */
declare
    problem text;
begin
    problem := case
        when retain_up_to not between interval '1 second' and interval '36500 days'
            then format('retain_up_to = %s is not between 1 second and 36500 days', retain_up_to)
        when retain_at_least not between interval '0' and interval '36500 days'
            then format('retain_at_least = %s is not between 0 and 36500 days', retain_at_least)
        when retain_at_least > retain_up_to
            then format('retain_at_least = %s is longer than retain_up_to = %s', retain_at_least, retain_up_to)
        when max_messages < 1 then format('max_messages = %s is not at least 1', max_messages)
        when max_storage < 1048576 then format('max_storage = %s is not at least 1048576 (1 MiB)', max_storage)
        when when_full not in ('evict', 'refuse') then format('when_full = %L is not one of evict, refuse', when_full)
    end;
    if problem is not null then
        raise exception using errcode = 'PB400', message = problem;
    end if;
end
$$;

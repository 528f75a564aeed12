create or replace function postbus_data.check_priorities(priorities integer[], is_batch boolean)
returns void
language plpgsql
immutable
as $$
/* Refuse a priority that is out of range (PB400); in a batch, the message says which message has it. */
declare
    wrong record;
begin
    select p.priority, p.place
    into wrong
    from unnest(priorities) with ordinality as p (priority, place)
    where p.priority not between 0 and 9
    order by p.place
    limit 1;
    if wrong.place is not null then
        raise exception using
            errcode = 'PB400',
            message = case
                when is_batch
                    then format('%s is not allowed: priority = %s is not between 0 and 9', postbus_data.message_name(wrong.place::integer), wrong.priority)
                else format('priority = %s is not between 0 and 9', wrong.priority)
            end,
            hint = '9 is the most urgent, and 4 the default';
    end if;
end
$$;

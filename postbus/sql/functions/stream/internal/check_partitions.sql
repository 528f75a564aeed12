create or replace function postbus_data.check_partitions(partitions integer)
returns void
language plpgsql
immutable
as $$
/* Refuse a number of partitions that is out of its range (PB400). */
declare
    problem text;
begin
    problem := case
        -- <stream settings: checks of partitions>
        when partitions is null then 'partitions cannot be null'
        when partitions not between 1 and 1024
            then format('partitions = %s is not between 1 and 1024', partitions)
        -- </stream settings>
    end;
    if problem is not null then
        raise exception using errcode = 'PB400', message = problem;
    end if;
end
$$;

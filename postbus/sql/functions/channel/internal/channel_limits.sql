create or replace function postbus_data.channel_limits(stream_id integer, name text)
returns postbus_data.channel
language plpgsql
volatile
as $$
/* The limits of a channel: those of its own name, else of the most specific pattern that matches. A row of nulls if there are none. */
#variable_conflict use_variable
declare
    limits postbus_data.channel;
begin
    select c.* into limits from postbus_data.channel as c where c.stream_id = stream_id and c.pattern = name;
    if not found then
        select c.*
        into limits
        from postbus_data.channel as c
        where c.stream_id = stream_id
            and c.regex is not null
            and name ~ c.regex
        order by c.rank
        limit 1;
    end if;
    return limits;
end
$$;

create or replace function postbus.pause_channel(stream text, pattern text)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Give out no messages of the channels that match a pattern, until resume_channel. Its other limits stay as they are; if it has none, it has those of the most
specific pattern that matches it, if there is one.

Raises   as set_channel.
Touches  as set_channel.
Locks    as set_channel.
*/
#variable_conflict use_variable
declare
    limits postbus_data.channel := postbus_data.channel_limits(postbus_data.stream_id(stream), pattern);
begin
    perform postbus.set_channel(
        stream, pattern, limits.max_concurrency, limits.max_rate, coalesce(limits.per, interval '1 second'), coalesce(limits.burst, 1),
        coalesce(limits.weight, 1), true
    );
end
$$;

create or replace function postbus_data.refresh_levels(stream_id integer)
returns integer
language plpgsql
volatile
as $$
/*
Write a stream's own functions anew when a level was used first. Until then they leave all work to the general ones, which takes longer.

Its caller holds the stream's maintenance mutex.
Returns  1 if it did, else 0.
Touches  the layout register, if no publisher could mark it.
*/
begin
    if not postbus_data.levels_are_stale(stream_id) then
        return 0;
    end if;
    perform postbus_data.mark_levels(stream_id, clock_timestamp());
    perform postbus_data.create_publish_functions(stream_id);
    perform postbus_data.create_receive_function(stream_id);
    return 1;
end
$$;

create or replace function postbus_data.use_channels(reader postbus_data.consumer, channels text[], now_at timestamptz)
returns void
language plpgsql
volatile
as $$
/*
Charge the channels for the messages that are about to be leased, one name for each, to their rates.

Postgres does not wait for a claim to be flushed, if the library has asked so. In a crash a claim of a limited channel could then be forgotten while its
worker goes on, so this transaction waits after all.

Touches  channel_pace (insert; delete of the last row).
*/
#variable_conflict use_variable
declare
    used record;
    here postbus_data.channel_room;
    is_limited boolean := false;
begin
    for used in select u.channel, count(*) as message_count from unnest(channels) as u (channel) group by u.channel order by u.channel loop
        here := postbus_data.channel_room(reader, used.channel, '{}', null, true, now_at);
        is_limited := is_limited or here.max_concurrency is not null or here.step is not null;
        if here.step is not null then
            insert into postbus_data.channel_pace (consumer_id, channel, tat)
            values (reader.id, used.channel, here.tat + used.message_count * here.step)
            on conflict do nothing;
            delete from postbus_data.channel_pace as p
            where p.consumer_id = reader.id
                and p.channel = used.channel
                and p.tat < here.tat + used.message_count * here.step;
        end if;
    end loop;
    if is_limited and current_setting('synchronous_commit') = 'off' then
        is_limited := set_config('synchronous_commit', 'on', true) = 'on';
    end if;
end
$$;

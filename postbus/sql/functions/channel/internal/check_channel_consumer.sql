create or replace function postbus_data.check_channel_consumer(settings postbus_data.consumer)
returns boolean
language plpgsql
volatile
as $$
/*
Whether a consumer is by channel: it is fair, or its stream has limits of channels.

Raises   PB409 for a fair consumer of a stream without channels, and for an order other than none where there are turns or limits.
Locks    a stream with channels, shared, until the transaction ends: set_channel waits, and finds the consumer.
*/
#variable_conflict use_variable
declare
    channel_tokens integer := (select s.channel_tokens from postbus_data.stream as s where s.id = settings.stream_id);
begin
    if channel_tokens is null then
        if settings.fair then
            raise exception using
                errcode = 'PB409',
                message = format('stream "%s" has no channels, which could take turns', settings.stream_name),
                hint = 'channel_tokens, how many leading tokens of the key name the channel, is set when a stream is created';
        end if;
        return false;
    end if;
    perform from postbus_data.stream as s where s.id = settings.stream_id for share;
    if settings.is_group or not (settings.fair or exists (select from postbus_data.channel as c where c.stream_id = settings.stream_id)) then
        return false;
    end if;
    perform postbus_data.check_channel_order(settings.ordering, settings.is_group, settings.stream_name, settings.name);
    return true;
end
$$;

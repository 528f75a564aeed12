create or replace function postbus_data.check_channels(entry postbus_data.publish_target, keys text[], priorities integer[], is_batch boolean)
returns void
language plpgsql
immutable
as $$
/* Refuse what a stream with channels does not take: a message without a key, or with a priority other than 4 (PB400). */
declare
    place integer := array_position(keys, null);
begin
    if keys is null or place is not null then
        raise exception using
            errcode = 'PB400',
            message = format(
                '%s is not allowed: it has no key', postbus_data.message_name(case when is_batch then coalesce(place, 1) end)
            ),
            hint = 'the stream has channels, and the leading tokens of the key name the channel';
    end if;
    if exists (select from unnest(priorities) as p where p <> 4) then
        raise exception using
            errcode = 'PB400',
            message = 'a stream with channels has no priorities',
            hint = 'channels take turns instead; give an urgent tenant a larger weight';
    end if;
end
$$;

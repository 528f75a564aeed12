create or replace function postbus_data.check_channel_order(ordering text, is_group boolean, stream text, consumer text)
returns void
language plpgsql
immutable
as $$
/* Refuse (PB409) a consumer whose order allows neither turns nor limits of channels. Groups have none: they read by position. */
begin
    if ordering <> 'none' and not is_group then
        raise exception using
            errcode = 'PB409',
            message = format('consumer "%s" of stream "%s" reads in order "%s", and limits of channels need order "none"', consumer, stream, ordering),
            hint = 'a channel with max_concurrency 1 has one message in flight at a time';
    end if;
end
$$;

create or replace function postbus_data.check_stream(settings postbus_data.stream)
returns void
language plpgsql
immutable
as $$
/* Refuse settings of a stream that are out of their range (PB400). Its partitions are not among its columns: see check_partitions. */
declare
    problem text;
begin
    problem := case
        -- <stream settings: checks>
        when settings.data_type is null then 'data_type cannot be null'
        when settings.data_type not in ('json', 'text', 'bytes')
            then format('data_type = %L is not one of json, text, bytes', settings.data_type)
        when settings.one_message_per_key is null then 'one_message_per_key cannot be null'
        when settings.channel_tokens not between 1 and 8
            then format('channel_tokens = %s is not between 1 and 8', settings.channel_tokens)
        when settings.max_message_bytes is null then 'max_message_bytes cannot be null'
        when settings.max_message_bytes not between 1 and 268435456
            then format('max_message_bytes = %s is not between 1 and 268435456 (256 MiB)', settings.max_message_bytes)
        when settings.segment_bytes is null then 'segment_bytes cannot be null'
        when settings.segment_bytes not between 65536 and 1099511627776
            then format('segment_bytes = %s is not between 65536 (64 KiB) and 1099511627776 (1 TiB)', settings.segment_bytes)
        when settings.segment_age is null then 'segment_age cannot be null'
        when settings.segment_age not between interval '1 second' and interval '3650 days'
            then format('segment_age = %s is not between 1 second and 3650 days', settings.segment_age)
        when settings.retain_up_to not between interval '1 second' and interval '36500 days'
            then format('retain_up_to = %s is not between 1 second and 36500 days', settings.retain_up_to)
        when settings.retain_at_least not between interval '0' and interval '36500 days'
            then format('retain_at_least = %s is not between 0 and 36500 days', settings.retain_at_least)
        when settings.max_messages < 1
            then format('max_messages = %s is not at least 1', settings.max_messages)
        when settings.max_storage < 1048576
            then format('max_storage = %s is not at least 1048576 (1 MiB)', settings.max_storage)
        when settings.until_acked is null then 'until_acked cannot be null'
        when settings.when_full is null then 'when_full cannot be null'
        when settings.when_full not in ('evict', 'refuse')
            then format('when_full = %L is not one of evict, refuse', settings.when_full)
        when settings.dedup_window not between interval '1 second' and interval '30 days'
            then format('dedup_window = %s is not between 1 second and 30 days', settings.dedup_window)
        when settings.process_unmodified is null then 'process_unmodified cannot be null'
        -- </stream settings>
        when settings.retain_at_least > settings.retain_up_to
            then format('retain_at_least = %s is longer than retain_up_to = %s', settings.retain_at_least, settings.retain_up_to)
    end;
    if problem is not null then
        raise exception using errcode = 'PB400', message = problem;
    end if;
end
$$;

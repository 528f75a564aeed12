create or replace function postbus.alter_stream(
    stream text,
    -- <stream settings: optional>
    partitions integer default null,
    max_message_bytes integer default null,
    segment_bytes bigint default null,
    segment_age interval default null,
    retain_up_to interval default null,
    retain_at_least interval default null,
    max_messages bigint default null,
    max_storage bigint default null,
    until_acked boolean default null,
    when_full text default null,
    dedup_window interval default null,
    process_unmodified boolean default null,
    -- </stream settings>
    unset text[] default '{}'
)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Change settings of a stream; null leaves a setting unchanged. See create_stream for what each means. Limits of messages and
segments apply to messages published from now on, retention from the next maintenance.

partitions  takes effect at the next maintenance, for messages published from then on. Each consumer reads the earlier messages to
            their end and then continues with the new partitions, which have new numbers: messages of a key stay in order.
unset       the names of settings to clear: those whose default in create_stream is null.

Raises   PB400 for an invalid value, PB404 for an unknown stream, PB409 when its partitions cannot be renumbered any further, or it has channels.
Touches  stream (update), segment (insert, update); replaces the stream's functions, and creates or drops its tables of ids.
Locks    with partitions, the stream's maintenance mutex, until the transaction ends.
*/
declare
    altered integer := postbus_data.stream_id(stream);
    settings postbus_data.stream;
    unknown text;
begin
    select u into unknown
    from unnest(unset) as u
    where u not in (
        -- <stream settings: unsettable>
        'retain_up_to', 'retain_at_least', 'max_messages', 'max_storage', 'dedup_window'
        -- </stream settings>
    )
    limit 1;
    if unknown is not null then
        raise exception using errcode = 'PB400', message = format('"%s" cannot be unset', unknown);
    end if;
    if partitions is not null then
        perform postbus_data.check_partitions(partitions);
        if (select s.channel_tokens is not null from postbus_data.stream as s where s.id = altered) then
            raise exception using
                errcode = 'PB409',
                message = format('stream "%s" has channels, so it keeps its number of partitions', stream),
                hint = 'create another stream with more of them, and move its publishers there';
        end if;
        perform postbus_data.repartition(altered, partitions);
    end if;
    update postbus_data.stream as s
    set
        -- <stream settings: changes>
        max_message_bytes = coalesce(alter_stream.max_message_bytes, s.max_message_bytes),
        segment_bytes = coalesce(alter_stream.segment_bytes, s.segment_bytes),
        segment_age = coalesce(alter_stream.segment_age, s.segment_age),
        retain_up_to = case when 'retain_up_to' = any (unset) then null else coalesce(alter_stream.retain_up_to, s.retain_up_to) end,
        retain_at_least = case when 'retain_at_least' = any (unset) then null else coalesce(alter_stream.retain_at_least, s.retain_at_least) end,
        max_messages = case when 'max_messages' = any (unset) then null else coalesce(alter_stream.max_messages, s.max_messages) end,
        max_storage = case when 'max_storage' = any (unset) then null else coalesce(alter_stream.max_storage, s.max_storage) end,
        until_acked = coalesce(alter_stream.until_acked, s.until_acked),
        when_full = coalesce(alter_stream.when_full, s.when_full),
        dedup_window = case when 'dedup_window' = any (unset) then null else coalesce(alter_stream.dedup_window, s.dedup_window) end,
        process_unmodified = coalesce(alter_stream.process_unmodified, s.process_unmodified),
        -- </stream settings>
        -- Maintenance determines it again.
        is_full = false
    where s.id = altered
    returning s.* into settings;
    perform postbus_data.check_stream(settings);
    if settings.dedup_window is null then
        perform postbus_data.end_dedup(altered);
    else
        perform postbus_data.begin_dedup(altered);
    end if;
    perform postbus_data.create_publish_functions(altered);
    perform postbus_data.create_receive_function(altered);
    perform postbus_data.create_claim_function(g.stream_id, g.number, s.data_type)
    from postbus_data.segment as g
    join postbus_data.stream as s on s.id = g.stream_id
    where g.stream_id = altered;
end
$$;

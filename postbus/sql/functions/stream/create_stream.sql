create or replace function postbus.create_stream(
    stream text,
    -- <stream settings: parameters>
    data_type text default 'json',
    one_message_per_key boolean default false,
    channel_tokens integer default null,
    partitions integer default 8,
    max_message_bytes integer default 8388608,
    segment_bytes bigint default 268435456,
    segment_age interval default interval '1 day',
    retain_up_to interval default null,
    retain_at_least interval default null,
    max_messages bigint default null,
    max_storage bigint default null,
    until_acked boolean default false,
    when_full text default 'evict',
    dedup_window interval default null,
    process_unmodified boolean default false,
    -- </stream settings>
    exist_ok boolean default false
)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Create a stream. A setting whose default is null sets no limit, or is off.

-- <stream settings: help>
data_type            What messages hold: json (any JSON value), text (str) or bytes.
one_message_per_key  A message replaces the one before of its key; consumers get the latest, state shows all.
channel_tokens       How many leading tokens of a key name its channel (tenant); none: no channels.
partitions           How many partitions its keys are spread over.
max_message_bytes    The largest data of a message.
segment_bytes        The size at which a segment of the log is full.
segment_age          The age at which a segment ends.
retain_up_to         Messages older than this are removed.
retain_at_least      Messages younger than this stay, whatever the limits.
max_messages         How many messages it may hold.
max_storage          How many bytes it may take on disk, kept to within a tenth.
until_acked          Messages are removed when all consumers have finished them.
when_full            At a limit: evict the oldest messages, or refuse new ones.
dedup_window         A message whose dedup_id was published this recently is not published again.
process_unmodified   With one message per key: publish a message even if its data has not changed.
-- </stream settings>

exist_ok             A stream that exists is left as it is. Settings that are given must be its own.

A consumer too slow for the limits misses messages, and its stats say so, unless it has keep_unread. Space is freed by dropping whole
segments of the log.

Raises   PB400 for an invalid name or setting, PB409 when the stream exists (with exist_ok: when a setting that is given
         differs).
Touches  stream, segment (insert); creates the stream's sequences, functions and tables.
*/
declare
    settings postbus_data.stream;
    existing postbus_data.stream;
    id integer;
begin
    perform postbus_data.check_name('stream', stream);
    -- <stream settings: assignments>
    settings.data_type := data_type;
    settings.one_message_per_key := one_message_per_key;
    settings.channel_tokens := channel_tokens;
    settings.max_message_bytes := max_message_bytes;
    settings.segment_bytes := segment_bytes;
    settings.segment_age := segment_age;
    settings.retain_up_to := retain_up_to;
    settings.retain_at_least := retain_at_least;
    settings.max_messages := max_messages;
    settings.max_storage := max_storage;
    settings.until_acked := until_acked;
    settings.when_full := when_full;
    settings.dedup_window := dedup_window;
    settings.process_unmodified := process_unmodified;
    -- </stream settings>
    perform postbus_data.check_partitions(partitions);
    perform postbus_data.check_stream(settings);
    if settings.channel_tokens is not null and settings.one_message_per_key then
        raise exception using
            errcode = 'PB400',
            message = 'a stream with one message per key has no channels',
            hint = 'channel_tokens needs a stream that keeps every message';
    end if;

    insert into postbus_data.stream as s (
        name,
        -- <stream settings: names>
        data_type, one_message_per_key, channel_tokens, max_message_bytes, segment_bytes, segment_age, retain_up_to, retain_at_least,
        max_messages, max_storage, until_acked, when_full, dedup_window, process_unmodified
        -- </stream settings>
    )
    values (
        stream,
        -- <stream settings: values>
        settings.data_type, settings.one_message_per_key, settings.channel_tokens, settings.max_message_bytes, settings.segment_bytes,
        settings.segment_age, settings.retain_up_to, settings.retain_at_least, settings.max_messages, settings.max_storage,
        settings.until_acked, settings.when_full, settings.dedup_window, settings.process_unmodified
        -- </stream settings>
    )
    on conflict (name) do nothing
    returning s.id into id;
    if id is null and not exist_ok then
        raise exception using
            errcode = 'PB409',
            message = format('stream "%s" already exists', stream),
            constraint = 'already_exists',
            hint = 'to take it as it is: exist_ok => true';
    end if;
    if id is null then
        select s.* into existing from postbus_data.stream as s where s.name = stream;
        perform postbus_data.check_same_settings(
            format('stream "%s"', stream),
            to_jsonb(existing) || jsonb_build_object(
                'partitions', postbus_data.layout_count(pg_sequence_last_value(to_regclass('postbus_data.layout_' || existing.id)))
            ),
            to_jsonb(settings) || jsonb_build_object('partitions', partitions),
            postbus_data.stream_defaults()
        );
        return;
    end if;

    -- From 0, so that an unused stream's horizon (0) is below its first message (1). CACHE 1: a cached, lower number would
    -- land below the horizon.
    execute format('create sequence postbus_data.seq_%s minvalue 0 start 0 cache 1', id);
    execute format('create sequence postbus_data.layout_%s cache 1', id);
    execute format('create sequence postbus_data.urgent_%s minvalue 0 start 0 cache 1', id);
    perform setval(format('postbus_data.seq_%s', id), 0);
    perform setval(format('postbus_data.urgent_%s', id), 0);
    perform postbus_data.prepare_segment(id, 1, 0, partitions);
    perform postbus_data.set_layout(id, 1, 0, partitions);
    if dedup_window is not null then
        perform postbus_data.begin_dedup(id);
    end if;
    if one_message_per_key then
        execute format(
            'create table postbus_data.state_%s (
                key text collate "C" primary key,
                seq bigint not null,
                segment integer not null,
                partition integer not null,
                hash bytea,
                is_deleted boolean not null default false
            ) with (fillfactor = 70)',
            id
        );
    end if;
    perform postbus_data.create_publish_functions(id);
    perform postbus_data.create_receive_function(id);
    perform postbus_data.create_ack_function(id);
    perform postbus_data.apply_grants(id);
end
$$;

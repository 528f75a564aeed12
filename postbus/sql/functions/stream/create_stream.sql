create or replace function postbus.create_stream(
    stream text,
    partitions integer default 8,
    data_type text default 'json',
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
    one_message_per_key boolean default false,
    process_unmodified boolean default false
)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Create a stream.

partitions         how many partitions its keys are spread over, 1 to 1024. Order is kept within a partition.
data_type          json (any JSON value, stored as given), text, or bytes.
max_message_bytes  the size limit of a message's data.
segment_bytes,     how large or old a segment of the log becomes before the next one begins; space is freed by dropping whole
segment_age        segments.

retain_up_to       messages older than this are evicted; null keeps them.
retain_at_least    messages younger than this stay, whatever the limits say.
max_messages,      how many messages, or how many bytes on disk, the stream may hold.
max_storage
when_full          at such a limit, drop the oldest messages (evict) or refuse new ones (refuse).
until_acked        messages are dropped when all consumers have finished them.
                   A consumer too slow for these limits misses messages, and its stats say so, unless it has keep_unread.

dedup_window         messages may have ids: an id published within this time is not published again.
one_message_per_key  a new message of a key replaces the one before: consumers get only the latest version of a key, and
                     postbus.state lists all of them.
process_unmodified   with one_message_per_key, publish a version even if its data is unchanged.

Raises   PB400 for an invalid name or setting, PB409 when the stream exists.
Touches  stream, segment (insert); creates the stream's sequences, functions and tables.
*/
declare
    id integer;
begin
    perform postbus_data.check_name('stream', stream);
    if data_type is null or data_type not in ('json', 'text', 'bytes') then
        raise exception using
            errcode = 'PB400',
            message = format('data type %s is not known', coalesce('"' || data_type || '"', 'null')),
            hint = 'use json, text or bytes';
    end if;
    if partitions is null or max_message_bytes is null or segment_bytes is null or segment_age is null
        or until_acked is null or when_full is null or one_message_per_key is null or process_unmodified is null
    then
        raise exception using errcode = 'PB400', message = 'a stream''s settings cannot be null';
    end if;
    perform postbus_data.check_limits(partitions, max_message_bytes, segment_bytes, segment_age);
    perform postbus_data.check_retention(retain_up_to, retain_at_least, max_messages, max_storage, when_full);
    perform postbus_data.check_dedup_window(dedup_window);

    insert into postbus_data.stream as s (
        name, data_type, max_message_bytes, segment_bytes, segment_age, retain_up_to, retain_at_least, max_messages, max_storage, until_acked,
        when_full, dedup_window, one_message_per_key, process_unmodified
    )
    values (
        stream, data_type, max_message_bytes, segment_bytes, segment_age, retain_up_to, retain_at_least, max_messages, max_storage, until_acked,
        when_full, dedup_window, one_message_per_key, process_unmodified
    )
    on conflict (name) do nothing
    returning s.id into id;
    if id is null then
        raise exception using errcode = 'PB409', message = format('stream "%s" already exists', stream);
    end if;

    -- From 0, so that an unused stream's horizon (0) is below its first message (1). CACHE 1: a cached, lower number would
    -- land below the horizon.
    execute format('create sequence postbus_data.seq_%s minvalue 0 start 0 cache 1', id);
    execute format('create sequence postbus_data.layout_%s cache 1', id);
    perform setval(format('postbus_data.seq_%s', id), 0);
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
    perform postbus_data.apply_grants(id);
end
$$;

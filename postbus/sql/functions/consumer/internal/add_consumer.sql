create or replace function postbus_data.add_consumer(
    settings postbus_data.consumer,
    "start" text,
    from_seq bigint,
    from_time timestamptz,
    exist_ok boolean
)
returns void
language plpgsql
as $$
/*
Create a consumer or a group with these settings. See create_consumer.

Raises   as create_consumer does.
Touches  consumer (insert).
*/
#variable_conflict use_variable
declare
    existing postbus_data.consumer;
    first_segment postbus_data.segment;
    new_id integer;
    what text;
begin
    perform postbus_data.check_name(case when settings.is_group then 'group' else 'consumer' end, settings.name);
    settings.stream_id := postbus_data.stream_id(settings.stream_name);
    perform postbus_data.check_consumer(settings);
    if settings.ordering = 'none' and (select s.one_message_per_key from postbus_data.stream as s where s.id = settings.stream_id) then
        raise exception using
            errcode = 'PB400',
            message = 'a stream with one message per key needs consumers in order "key" or "partition"',
            hint = 'in order "none" a later version could overtake one that is in flight';
    end if;
    settings.by_channel := postbus_data.check_channel_consumer(settings);
    if settings.ordering = 'partition' and not settings.is_group
        and exists (select from postbus_data.level as l where l.stream_id = settings.stream_id)
    then
        raise exception using
            errcode = 'PB409',
            message = format('ordering = ''partition'' is not possible: messages of several priorities were published to stream "%s"', settings.stream_name),
            hint = 'choose order "key" or "none", which know priorities, or a group, which reads all levels side by side';
    end if;

    if num_nonnulls("start", from_seq, from_time) = 0 then
        "start" := 'earliest';
    end if;
    settings.start_after := postbus_data.start_position(settings.stream_id, "start", from_seq, from_time);
    first_segment := postbus_data.first_segment(settings.stream_id, settings.start_after);
    insert into postbus_data.consumer as c (
        stream_id, stream_name, name, is_group, start_after, partition_base, partition_count, backoff, backoff_factor, backoff_cap, backoff_jitter,
        filter_key_pattern, filter_key_regex, filter_headers, filter_headers_not, filter_data, by_channel,
        -- <consumer settings: names>
        ordering, ack_wait, max_ack_pending, max_deliver, retain_dead, max_per_key, max_waiting, on_dead, on_expired, keep_unread,
        expire_after, keep_history, dead_letters_to, ageing, fair
        -- </consumer settings>
    )
    values (
        settings.stream_id, settings.stream_name, settings.name, settings.is_group, settings.start_after, first_segment.partition_base,
        first_segment.partition_count, settings.backoff, settings.backoff_factor, settings.backoff_cap, settings.backoff_jitter,
        settings.filter_key_pattern, settings.filter_key_regex, settings.filter_headers, settings.filter_headers_not, settings.filter_data,
        settings.by_channel,
        -- <consumer settings: values>
        settings.ordering, settings.ack_wait, settings.max_ack_pending, settings.max_deliver, settings.retain_dead, settings.max_per_key,
        settings.max_waiting, settings.on_dead, settings.on_expired, settings.keep_unread, settings.expire_after, settings.keep_history,
        settings.dead_letters_to, settings.ageing, settings.fair
        -- </consumer settings>
    )
    on conflict (stream_name, name) do nothing
    returning c.id into new_id;
    if new_id is not null then
        return;
    end if;
    select c.* into existing from postbus_data.consumer as c where c.stream_name = settings.stream_name and c.name = settings.name;
    what := format('%s "%s" of stream "%s"', case when existing.is_group then 'group' else 'consumer' end, settings.name, settings.stream_name);
    if existing.is_group <> settings.is_group then
        raise exception using errcode = 'PB409', message = format('%s already exists', what), hint = 'choose another name';
    elsif not exist_ok then
        raise exception using
            errcode = 'PB409',
            message = format('%s already exists', what),
            constraint = 'already_exists',
            hint = 'to take it as it is: exist_ok => true';
    end if;
    perform postbus_data.check_same_settings(
        what, to_jsonb(existing), to_jsonb(settings), postbus_data.consumer_defaults()
    );
end
$$;

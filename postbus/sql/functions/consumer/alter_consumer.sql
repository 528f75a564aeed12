create or replace function postbus.alter_consumer(
    stream text,
    consumer text,
    -- <consumer settings: optional>
    ack_wait interval default null,
    max_ack_pending integer default null,
    max_deliver integer default null,
    retain_dead interval default null,
    max_per_key integer default null,
    max_waiting integer default null,
    on_dead text default null,
    on_expired text default null,
    keep_unread boolean default null,
    expire_after interval default null,
    keep_history interval default null,
    dead_letters_to text default null,
    ageing interval default null,
    fair boolean default null,
    -- </consumer settings>
    backoff interval[] default null,
    backoff_factor double precision default null,
    backoff_cap interval default null,
    backoff_jitter double precision default null,
    filter_key_pattern text default null,
    filter_headers jsonb default null,
    filter_headers_not jsonb default null,
    filter_data text default null,
    unset text[] default '{}'
)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Change settings of a consumer; null leaves a setting unchanged. See create_consumer for what each means.

New settings apply to deliveries and failures from now on, and a new filter to messages not delivered yet. A backoff is replaced
as a whole: its factor and cap are the ones given in this call. The ordering cannot be changed, because messages in flight were
delivered under it.

unset    the names of settings to clear: backoff, and those whose default in create_consumer is null.

Raises   PB400 for an invalid value, PB404 for an unknown stream or consumer, PB409 for a fair consumer of a stream without channels, or in another order
         than none.
Touches  consumer (update).
Locks    the consumer's row, so that of two calls at once neither undoes what the other changes.
*/
declare
    settings postbus_data.consumer;
    unknown text;
begin
    select u into unknown
    from unnest(unset) as u
    where u not in (
        'backoff', 'backoff_factor', 'backoff_cap', 'filter_key_pattern', 'filter_headers', 'filter_headers_not', 'filter_data',
        -- <consumer settings: unsettable>
        'max_deliver', 'retain_dead', 'max_per_key', 'expire_after', 'keep_history', 'dead_letters_to', 'ageing'
        -- </consumer settings>
    )
    limit 1;
    if unknown is not null then
        raise exception using errcode = 'PB400', message = format('"%s" cannot be unset', unknown);
    end if;
    perform from postbus_data.consumer as c
    where c.stream_name = alter_consumer.stream
        and c.name = alter_consumer.consumer
    for no key update;
    settings := postbus_data.find_consumer(stream, consumer);
    settings.backoff := case when 'backoff' = any (unset) then '{}' else coalesce(backoff, settings.backoff) end;
    settings.backoff_factor := case
        when unset && array['backoff', 'backoff_factor'] then null
        when backoff is not null then backoff_factor
        else coalesce(backoff_factor, settings.backoff_factor)
    end;
    settings.backoff_cap := case
        when 'backoff_cap' = any (unset) then null
        when backoff is not null then backoff_cap
        else coalesce(backoff_cap, settings.backoff_cap)
    end;
    settings.backoff_jitter := coalesce(backoff_jitter, settings.backoff_jitter);
    if 'filter_key_pattern' = any (unset) then
        settings.filter_key_pattern := null;
        settings.filter_key_regex := null;
    end if;
    settings.filter_headers := case when 'filter_headers' = any (unset) then null else settings.filter_headers end;
    settings.filter_headers_not := case when 'filter_headers_not' = any (unset) then null else settings.filter_headers_not end;
    settings.filter_data := case when 'filter_data' = any (unset) then null else settings.filter_data end;
    settings := postbus_data.set_filter(settings, filter_key_pattern, filter_headers, filter_headers_not, filter_data);

    update postbus_data.consumer as c
    set
        -- <consumer settings: changes>
        ack_wait = coalesce(alter_consumer.ack_wait, c.ack_wait),
        max_ack_pending = coalesce(alter_consumer.max_ack_pending, c.max_ack_pending),
        max_deliver = case when 'max_deliver' = any (unset) then null else coalesce(alter_consumer.max_deliver, c.max_deliver) end,
        retain_dead = case when 'retain_dead' = any (unset) then null else coalesce(alter_consumer.retain_dead, c.retain_dead) end,
        max_per_key = case when 'max_per_key' = any (unset) then null else coalesce(alter_consumer.max_per_key, c.max_per_key) end,
        max_waiting = coalesce(alter_consumer.max_waiting, c.max_waiting),
        on_dead = coalesce(alter_consumer.on_dead, c.on_dead),
        on_expired = coalesce(alter_consumer.on_expired, c.on_expired),
        keep_unread = coalesce(alter_consumer.keep_unread, c.keep_unread),
        expire_after = case when 'expire_after' = any (unset) then null else coalesce(alter_consumer.expire_after, c.expire_after) end,
        keep_history = case when 'keep_history' = any (unset) then null else coalesce(alter_consumer.keep_history, c.keep_history) end,
        dead_letters_to = case when 'dead_letters_to' = any (unset) then null else coalesce(alter_consumer.dead_letters_to, c.dead_letters_to) end,
        ageing = case when 'ageing' = any (unset) then null else coalesce(alter_consumer.ageing, c.ageing) end,
        fair = coalesce(alter_consumer.fair, c.fair),
        -- </consumer settings>
        backoff = settings.backoff,
        backoff_factor = settings.backoff_factor,
        backoff_cap = settings.backoff_cap,
        backoff_jitter = settings.backoff_jitter,
        filter_key_pattern = settings.filter_key_pattern,
        filter_key_regex = settings.filter_key_regex,
        filter_headers = settings.filter_headers,
        filter_headers_not = settings.filter_headers_not,
        filter_data = settings.filter_data
    where c.id = settings.id
    returning c.* into settings;
    perform postbus_data.check_consumer(settings);
    if not settings.by_channel and postbus_data.check_channel_consumer(settings) then
        perform postbus_data.go_by_channel(settings.id);
    end if;
end
$$;

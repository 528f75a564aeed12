create or replace function postbus.alter_consumer(
    stream text,
    consumer text,
    ack_wait interval default null,
    max_ack_pending integer default null,
    max_deliver integer default null,
    backoff interval[] default null,
    backoff_factor double precision default null,
    backoff_cap interval default null,
    backoff_jitter double precision default null,
    retain_dead interval default null,
    max_per_key integer default null,
    max_waiting integer default null,
    on_dead text default null,
    filter_key_pattern text default null,
    filter_headers jsonb default null,
    filter_headers_not jsonb default null,
    filter_data text default null,
    on_expired text default null,
    keep_unread boolean default null,
    expire_after interval default null,
    keep_history interval default null,
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

unset    the names of settings to clear: max_deliver, backoff, backoff_factor, backoff_cap, retain_dead, max_per_key,
         filter_key_pattern, filter_headers, filter_headers_not, filter_data, expire_after, keep_history.

Raises   PB400 for an invalid value, PB404 for an unknown stream or consumer.
Touches  consumer (update).
*/
declare
    settings postbus_data.consumer := postbus_data.find_consumer(stream, consumer);
    unknown text;
begin
    select u into unknown
    from unnest(unset) as u
    where u not in (
        'max_deliver', 'backoff', 'backoff_factor', 'backoff_cap', 'retain_dead', 'max_per_key',
        'filter_key_pattern', 'filter_headers', 'filter_headers_not', 'filter_data', 'expire_after', 'keep_history'
    )
    limit 1;
    if unknown is not null then
        raise exception using errcode = 'PB400', message = format('"%s" cannot be unset', unknown);
    end if;
    settings.ack_wait := coalesce(ack_wait, settings.ack_wait);
    settings.max_ack_pending := coalesce(max_ack_pending, settings.max_ack_pending);
    settings.max_deliver := case when 'max_deliver' = any (unset) then null else coalesce(max_deliver, settings.max_deliver) end;
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
    settings.retain_dead := case when 'retain_dead' = any (unset) then null else coalesce(retain_dead, settings.retain_dead) end;
    settings.max_per_key := case when 'max_per_key' = any (unset) then null else coalesce(max_per_key, settings.max_per_key) end;
    settings.max_waiting := coalesce(max_waiting, settings.max_waiting);
    settings.on_dead := coalesce(on_dead, settings.on_dead);
    settings.on_expired := coalesce(on_expired, settings.on_expired);
    settings.expire_after := case when 'expire_after' = any (unset) then null else coalesce(expire_after, settings.expire_after) end;
    settings.keep_history := case when 'keep_history' = any (unset) then null else coalesce(keep_history, settings.keep_history) end;
    if 'filter_key_pattern' = any (unset) then
        settings.filter_key_pattern := null;
        settings.filter_key_regex := null;
    end if;
    settings.filter_headers := case when 'filter_headers' = any (unset) then null else settings.filter_headers end;
    settings.filter_headers_not := case when 'filter_headers_not' = any (unset) then null else settings.filter_headers_not end;
    settings.filter_data := case when 'filter_data' = any (unset) then null else settings.filter_data end;
    settings := postbus_data.set_filter(settings, filter_key_pattern, filter_headers, filter_headers_not, filter_data);
    perform postbus_data.check_consumer(settings);

    update postbus_data.consumer as c
    set ack_wait = settings.ack_wait,
        max_ack_pending = settings.max_ack_pending,
        max_deliver = settings.max_deliver,
        backoff = settings.backoff,
        backoff_factor = settings.backoff_factor,
        backoff_cap = settings.backoff_cap,
        backoff_jitter = settings.backoff_jitter,
        retain_dead = settings.retain_dead,
        max_per_key = settings.max_per_key,
        max_waiting = settings.max_waiting,
        on_dead = settings.on_dead,
        filter_key_pattern = settings.filter_key_pattern,
        filter_key_regex = settings.filter_key_regex,
        filter_headers = settings.filter_headers,
        filter_headers_not = settings.filter_headers_not,
        filter_data = settings.filter_data,
        on_expired = settings.on_expired,
        expire_after = settings.expire_after,
        keep_history = settings.keep_history,
        keep_unread = coalesce(alter_consumer.keep_unread, c.keep_unread)
    where c.id = settings.id;
end
$$;

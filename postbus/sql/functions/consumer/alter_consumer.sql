create or replace function postbus.alter_consumer(
    stream text,
    consumer text,
    ordering text default null,
    ack_wait interval default null,
    max_ack_pending integer default null,
    max_deliver integer default null,
    backoff interval[] default null,
    backoff_factor double precision default null,
    backoff_cap interval default null,
    backoff_jitter double precision default null,
    retain_dead interval default null,
    unset text[] default '{}'
)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
/*
Change settings of a consumer; null leaves one as it is. They hold for deliveries and failures from now on.

unset    the names of settings to put back to "none": max_deliver, backoff, backoff_factor, backoff_cap, retain_dead.

Raises   PB400 for a value that is not allowed, PB404.
*/
declare
    settings postbus_data.consumer := postbus_data.find_consumer(stream, consumer);
    unknown text;
begin
    select u into unknown
    from unnest(unset) as u
    where u not in ('max_deliver', 'backoff', 'backoff_factor', 'backoff_cap', 'retain_dead')
    limit 1;
    if unknown is not null then
        raise exception using errcode = 'PB400', message = format('"%s" cannot be unset', unknown);
    end if;
    settings.ordering := coalesce(ordering, settings.ordering);
    settings.ack_wait := coalesce(ack_wait, settings.ack_wait);
    settings.max_ack_pending := coalesce(max_ack_pending, settings.max_ack_pending);
    settings.max_deliver := case when 'max_deliver' = any (unset) then null else coalesce(max_deliver, settings.max_deliver) end;
    settings.backoff := case when 'backoff' = any (unset) then '{}' else coalesce(backoff, settings.backoff) end;
    settings.backoff_factor := case
        when unset && array['backoff', 'backoff_factor'] then null
        else coalesce(backoff_factor, settings.backoff_factor)
    end;
    settings.backoff_cap := case when 'backoff_cap' = any (unset) then null else coalesce(backoff_cap, settings.backoff_cap) end;
    settings.backoff_jitter := coalesce(backoff_jitter, settings.backoff_jitter);
    settings.retain_dead := case when 'retain_dead' = any (unset) then null else coalesce(retain_dead, settings.retain_dead) end;
    perform postbus_data.check_consumer(settings);

    update postbus_data.consumer as c
    set ordering = settings.ordering,
        ack_wait = settings.ack_wait,
        max_ack_pending = settings.max_ack_pending,
        max_deliver = settings.max_deliver,
        backoff = settings.backoff,
        backoff_factor = settings.backoff_factor,
        backoff_cap = settings.backoff_cap,
        backoff_jitter = settings.backoff_jitter,
        retain_dead = settings.retain_dead
    where c.id = settings.id;
end
$$;

create or replace function postbus.create_consumer(
    stream text,
    consumer text,
    ordering text default 'none',
    ack_wait interval default interval '30 seconds',
    max_ack_pending integer default 10000,
    max_deliver integer default null,
    backoff interval[] default '{}',
    backoff_factor double precision default null,
    backoff_cap interval default null,
    backoff_jitter double precision default 0,
    retain_dead interval default null,
    "start" text default null,
    from_seq bigint default null,
    from_time timestamptz default null
)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
/*
Create a consumer of a stream. It costs publishers nothing.

ordering         none: any message that is not in flight. partition: one batch of a partition at a time, and a message that fails
                 holds its partition.
ack_wait         how long a delivery is leased before it is given to somebody else.
max_ack_pending  how many messages may be in flight.
max_deliver      how many deliveries before a message becomes a dead letter; null for ever.
backoff          how long a message waits after each failure; backoff_factor, _cap and _jitter make it grow.
retain_dead      how long dead letters are kept; null for ever.
start            earliest (the default) or latest; or from_seq, or from_time.

Raises   PB400 for a name or setting that is not allowed, PB404, PB409 when it exists.
*/
declare
    settings postbus_data.consumer;
    new_id integer;
begin
    perform postbus_data.check_name('consumer', consumer);
    settings.stream_id := postbus_data.stream_id(stream);
    settings.ordering := ordering;
    settings.ack_wait := ack_wait;
    settings.max_ack_pending := max_ack_pending;
    settings.max_deliver := max_deliver;
    settings.backoff := backoff;
    settings.backoff_factor := backoff_factor;
    settings.backoff_cap := backoff_cap;
    settings.backoff_jitter := backoff_jitter;
    settings.retain_dead := retain_dead;
    perform postbus_data.check_consumer(settings);
    if num_nonnulls("start", from_seq, from_time) = 0 then
        "start" := 'earliest';
    end if;

    insert into postbus_data.consumer as c (
        stream_id, stream_name, name, ordering, ack_wait, max_ack_pending, max_deliver, backoff, backoff_factor, backoff_cap, backoff_jitter,
        retain_dead, start_after
    )
    values (
        settings.stream_id, stream, consumer, ordering, ack_wait, max_ack_pending, max_deliver, backoff, backoff_factor, backoff_cap,
        backoff_jitter, retain_dead, postbus_data.start_position(settings.stream_id, "start", from_seq, from_time)
    )
    on conflict (stream_name, name) do nothing
    returning c.id into new_id;
    if new_id is null then
        raise exception using errcode = 'PB409', message = format('consumer "%s" of stream "%s" exists', consumer, stream);
    end if;
end
$$;

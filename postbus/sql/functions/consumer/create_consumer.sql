create or replace function postbus.create_consumer(
    stream text,
    consumer text,
    -- <consumer settings: parameters>
    ordering text default 'key',
    ack_wait interval default interval '30 seconds',
    max_ack_pending integer default 10000,
    max_deliver integer default null,
    retain_dead interval default null,
    max_per_key integer default null,
    max_waiting integer default 1000,
    on_dead text default 'continue',
    on_expired text default 'skip',
    keep_unread boolean default false,
    expire_after interval default null,
    keep_history interval default null,
    dead_letters_to text default null,
    ageing interval default null,
    fair boolean default false,
    -- </consumer settings>
    backoff interval[] default '{}',
    backoff_factor double precision default null,
    backoff_cap interval default null,
    backoff_jitter double precision default 0,
    filter_key_pattern text default null,
    filter_headers jsonb default null,
    filter_headers_not jsonb default null,
    filter_data text default null,
    "start" text default null,
    from_seq bigint default null,
    from_time timestamptz default null,
    exist_ok boolean default false
)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Create a consumer of a stream. It costs publishers nothing. A setting whose default is null sets no limit, or is off. The ordering
cannot be altered later.

-- <consumer settings: help>
ordering         key: messages of a key in order, and a failed one holds its key. none: any message that is not in flight.
                 partition: one batch of a partition at a time, and a failed message holds its partition.
ack_wait         How long a delivery is leased before it may go to another worker.
max_ack_pending  How many messages may be in flight.
max_deliver      How many deliveries before a message becomes a dead letter.
retain_dead      How long dead letters are kept.
max_per_key      In order "key": how many messages of a key a batch may hold.
max_waiting      In order "key": how many messages may be parked behind others of their key before reading ahead stops.
on_dead          In order "key": a dead letter lets its key continue, or holds it until it is redriven or discarded.
on_expired       A message past its time to live is skipped (skip), or becomes a dead letter (bury).
keep_unread      The stream keeps what it has not finished, whatever its retention.
expire_after     It is removed when nobody has received from it for this long.
keep_history     How long history keeps the outcome of each delivery.
dead_letters_to  A stream that a copy of each new dead letter is published to.
ageing           A message gains a level of priority each time that it has waited this long.
fair             In order "none", of a stream with channels: channels that have messages take turns.
-- </consumer settings>
backoff          how long a message waits after each failure; backoff_factor, _cap and _jitter make the delay grow.
filter_…         which messages the consumer wants: a key pattern; headers that a message must have; headers that it must not
                 have; a JSON path that must yield an item other than false and null. Other messages are skipped.
start            earliest (the default) or latest; or give from_seq or from_time instead.
exist_ok         A consumer that exists is left as it is, and where it stands. Settings that are given must be its own.

Raises   PB400 for an invalid name or setting, PB404 for an unknown stream, PB409 when the consumer exists (with exist_ok: when a setting
         that is given differs). With start =>
         'latest', PB412 outside READ COMMITTED and PB503 on a standby.
Touches  consumer (insert).
*/
declare
    settings postbus_data.consumer;
begin
    settings.is_group := false;
    settings.stream_id := postbus_data.stream_id(stream);
    settings.stream_name := stream;
    settings.name := consumer;
    -- <consumer settings: assignments>
    settings.ordering := ordering;
    settings.ack_wait := ack_wait;
    settings.max_ack_pending := max_ack_pending;
    settings.max_deliver := max_deliver;
    settings.retain_dead := retain_dead;
    settings.max_per_key := max_per_key;
    settings.max_waiting := max_waiting;
    settings.on_dead := on_dead;
    settings.on_expired := on_expired;
    settings.keep_unread := keep_unread;
    settings.expire_after := expire_after;
    settings.keep_history := keep_history;
    settings.dead_letters_to := dead_letters_to;
    settings.ageing := ageing;
    settings.fair := fair;
    -- </consumer settings>
    settings.backoff := backoff;
    settings.backoff_factor := backoff_factor;
    settings.backoff_cap := backoff_cap;
    settings.backoff_jitter := backoff_jitter;
    settings.stream_id := (select s.id from postbus_data.stream as s where s.name = stream);
    settings := postbus_data.set_filter(settings, filter_key_pattern, filter_headers, filter_headers_not, filter_data);
    perform postbus_data.add_consumer(settings, "start", from_seq, from_time, exist_ok);
end
$$;

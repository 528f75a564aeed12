create or replace function postbus.create_group(
    stream text,
    "group" text,
    keep_unread boolean default false,
    expire_after interval default null,
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
Create a group: a consumer that is read by position, with claim, fetch and commit, instead of by acks. See create_consumer for its
settings.

A group gets every message of the log, including messages whose time to live is over and, in a stream with one message per key,
versions that were replaced.

Raises   PB400 for an invalid name or setting, PB404 for an unknown stream, PB409 when a group or consumer of that name exists
         (with exist_ok: a consumer, or a group with other settings).
         With start => 'latest', PB412 outside READ COMMITTED and PB503 on a standby.
Touches  consumer (insert).
*/
declare
    settings postbus_data.consumer := jsonb_populate_record(null::postbus_data.consumer, postbus_data.consumer_defaults());
begin
    settings.stream_name := stream;
    settings.name := "group";
    settings.is_group := true;
    settings.ordering := 'partition';
    settings.keep_unread := keep_unread;
    settings.expire_after := expire_after;
    perform postbus_data.add_consumer(settings, "start", from_seq, from_time, exist_ok);
end
$$;

create or replace function postbus.create_group(
    stream text,
    "group" text,
    keep_unread boolean default false,
    expire_after interval default null,
    "start" text default null,
    from_seq bigint default null,
    from_time timestamptz default null
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

Raises   PB400 for an invalid name or setting, PB404 for an unknown stream, PB409 when a group or consumer of that name exists.
         With start => 'latest', PB412 outside READ COMMITTED and PB503 on a standby.
Touches  consumer (insert).
*/
begin
    perform postbus.create_consumer(
        stream, "group", ordering => 'partition', keep_unread => keep_unread, expire_after => expire_after, "start" => "start",
        from_seq => from_seq, from_time => from_time
    );
    update postbus_data.consumer as c
    set is_group = true
    where c.stream_name = create_group.stream
        and c.name = create_group."group";
end
$$;

create or replace function postbus.grant_stream(stream text, role text, may text)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Allow a role to publish to a stream, to consume it (receive and ack, with existing consumers) or to read it. A null stream means
all streams, including future ones.

Raises   PB400 for an unknown right, PB404 for an unknown stream or role.
Touches  stream_grant (insert); grants usage of the schemas, and rights on the stream's functions and log.
*/
declare
    granted integer := case when stream is not null then postbus_data.stream_id(stream) end;
begin
    if may is null or may not in ('publish', 'consume', 'read') then
        raise exception using errcode = 'PB400', message = format('right %L is not one of publish, consume, read', may);
    end if;
    if to_regrole(quote_ident(role)) is null then
        raise exception using errcode = 'PB404', message = format('role "%s" does not exist', role);
    end if;
    insert into postbus_data.stream_grant (stream_id, role, may) values (granted, role, may) on conflict do nothing;
    execute format('grant usage on schema postbus, postbus_data to %I', role);
    perform postbus_data.apply_grants(s.id) from postbus_data.stream as s where s.id = granted or granted is null;
end
$$;

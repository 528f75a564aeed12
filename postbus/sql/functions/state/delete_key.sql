create or replace function postbus.delete_key(stream text, key text)
returns bigint
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Delete a key of a stream that keeps one message per key. Consumers get a message that says so: with the header postbus-deleted and
without content (null in a json stream, otherwise empty).

Returns  the seq of that message; null when there is no such key.
Raises   PB404 for an unknown stream, PB409 when the stream does not keep one message per key; as publish.
Touches  the stream's state (update), the current segment of the stream (insert).
Locks    the key's state, and the horizon of the stream, shared, until the transaction ends.
*/
declare
    source postbus_data.stream;
    last_seq bigint;
begin
    select s.* into source from postbus_data.stream as s where s.id = postbus_data.stream_id(stream);
    if not source.one_message_per_key then
        raise exception using
            errcode = 'PB409',
            message = format('stream "%s" does not keep one message per key', stream);
    end if;
    execute format(
        'select t.seq from postbus_data.state_%s as t where t.key = $1 and t.seq > 0 and not t.is_deleted for update', source.id
    )
    into last_seq
    using key;
    if last_seq is null then
        return null;
    end if;
    return postbus.publish(
        stream,
        key,
        data => case source.data_type when 'json' then 'null' when 'text' then '' end,
        bytes => case when source.data_type = 'bytes' then ''::bytea end,
        headers => '{"postbus-deleted": "true"}'
    );
end
$$;

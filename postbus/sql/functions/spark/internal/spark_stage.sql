create or replace function postbus_data.spark_stage(
    stream text,
    attempt uuid,
    chunk integer,
    writer text,
    batch_id bigint,
    message_count integer,
    keys text[],
    data text[],
    headers jsonb[],
    bytes bytea[],
    deliver_at timestamptz[],
    priorities integer[] default null,
    caller postbus.caller default postbus.current_caller()
)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Check messages of a task, hash their keys, and store them where spark_publish finds them. Tasks do this in parallel; the driver
publishes alone.

Raises   PB400 and PB413 for an invalid message, PB404 for an unknown stream.
Touches  spark_staging (insert).
*/
declare
    entry postbus_data.publish_target;
    contents json[];
    hashes integer[];
begin
    if not starts_with(writer, stream || '/') then
        raise exception using errcode = 'PB400', message = format('writer "%s" does not belong to stream "%s"', writer, stream);
    end if;
    select s.id, s.data_type, s.max_message_bytes
    into entry.stream_id, entry.data_type, entry.max_message_bytes
    from postbus_data.stream as s
    where s.id = postbus_data.permitted_stream(caller, stream, 'publish');
    contents := postbus_data.check_messages(entry, message_count, keys, data, headers, bytes, null, priorities);
    perform postbus_data.check_priorities(priorities, true);
    -- As partition_of, which takes them modulo the number of partitions.
    hashes := array(
        select (get_byte(h.hash, 0) << 16) | (get_byte(h.hash, 1) << 8) | get_byte(h.hash, 2)
        from (select sha256(convert_to(u.key, 'UTF8'::name)) as hash from unnest(keys) with ordinality as u (key, place) order by u.place offset 0) as h
    );
    insert into postbus_data.spark_staging (
        attempt, chunk, writer, batch_id, message_count, keys, data, headers, bytes, deliver_at, contents, hashes, priorities
    )
    values (
        attempt, chunk, writer, batch_id, message_count, keys, case when contents is null then data end, headers, bytes, deliver_at,
        contents, hashes, priorities
    );
end
$$;

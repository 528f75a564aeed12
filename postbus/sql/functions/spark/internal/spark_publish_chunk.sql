create or replace function postbus_data.spark_publish_chunk(stream text, staged postbus_data.spark_staging)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
/*
Publish the messages of one staged row, in their order. Messages with a future deliver_at are scheduled; those with the same
deliver_at keep their order.

Raises   as publish_many; PB409 for encoded rows, which a later release of the library has staged.
*/
declare
    entry postbus_data.publish_target := postbus_data.begin_publish(stream, null);
    seqs bigint[];
    part record;
begin
    if staged.encoded is not null then
        raise exception using
            errcode = 'PB409',
            message = 'the tasks run a later release of Postbus than the driver',
            hint = 'nothing was published; install the same release on both';
    end if;
    -- Release 0.1.0 staged them without hashes, and unchecked.
    if staged.deliver_at is null and staged.hashes is not null and not entry.one_message_per_key and entry.channel_tokens is null then
        select d.seqs, d.layout into seqs, entry.layout from postbus_data.draw_seqs(entry, staged.message_count) as d;
        perform postbus_data.insert_messages(
            entry, clock_timestamp(), null, seqs, staged.keys, staged.contents, staged.data, staged.headers, staged.bytes,
            staged.hashes, staged.priorities
        );
        return;
    end if;
    if staged.contents is not null then
        staged.data := staged.contents::text[];
    end if;
    if staged.deliver_at is null then
        perform postbus.publish_many(stream, staged.keys, staged.data, staged.headers, staged.bytes, priorities => staged.priorities);
        return;
    end if;
    for part in
        select
            m.due_at,
            array_agg(m.key order by m.place) as keys,
            array_agg(m.data order by m.place) as data,
            array_agg(m.headers order by m.place) as headers,
            array_agg(m.bytes order by m.place) as bytes,
            array_agg(m.priority order by m.place) as priorities
        from (
            select u.*, case when u.deliver_at > clock_timestamp() then u.deliver_at end as due_at
            from unnest(staged.keys, staged.data, staged.headers, staged.bytes, staged.deliver_at, staged.priorities)
                with ordinality as u (key, data, headers, bytes, deliver_at, priority, place)
        ) as m
        group by m.due_at
        order by m.due_at nulls first
    loop
        perform postbus.publish_many(
            stream,
            part.keys,
            case when staged.data is not null then part.data end,
            part.headers,
            case when staged.bytes is not null then part.bytes end,
            deliver_at => part.due_at,
            priorities => case when staged.priorities is not null then part.priorities end
        );
    end loop;
end
$$;

create or replace function postbus.publish_many(
    stream text,
    keys text[] default null,
    data text[] default null,
    headers jsonb[] default null,
    bytes bytea[] default null,
    expected_type text default null,
    ttl interval default null,
    deliver_at timestamptz default null,
    dedup_ids text[] default null,
    priorities integer[] default null,
    caller postbus.caller default postbus.current_caller()
)
returns bigint[]
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Publish at most 10,000 messages to a stream, all or none, in order, in the caller's transaction.

The arrays are parallel: message n is keys[n], data[n] (bytes[n] in a bytes stream) and headers[n]. Keys, headers, dedup_ids
and priorities may be omitted, or be null for some messages. See publish for what a message may hold; ttl and deliver_at apply to all of them.

Returns  the messages' seqs, in order, or with deliver_at their schedule ids; an empty array for no messages. For duplicates and
         unchanged versions see publish.
Raises   as publish; PB400 and PB413 name the message's place in the batch. PB413 also for more than 10,000 messages.
Touches  as publish.
Locks    as publish.
*/
#variable_conflict use_variable
declare
    entry postbus_data.publish_target := postbus_data.begin_publish(stream, expected_type, caller);
    message_count integer := coalesce(cardinality(data), cardinality(bytes), 0);
    contents json[];
    seqs bigint[];
    fresh postbus_data.publish_batch;
begin
    if message_count = 0 then
        perform postbus_data.check_batch(0, keys, data, headers, bytes, dedup_ids, priorities);
        return '{}';
    end if;
    contents := postbus_data.check_messages(entry, message_count, keys, data, headers, bytes, dedup_ids, priorities);
    if entry.channel_tokens is not null then
        perform postbus_data.check_channels(entry, keys, priorities, true);
    end if;
    perform postbus_data.check_ttl(ttl);
    if priorities is not null then
        perform postbus_data.check_priorities(priorities, true);
    end if;
    if dedup_ids is not null or entry.one_message_per_key then
        fresh := postbus_data.skip_duplicates(entry, row(keys, data, contents, headers, bytes, dedup_ids, null, null, null, null, priorities), deliver_at > clock_timestamp());
        if fresh.seqs is null then
            return fresh.answers;
        end if;
        keys := fresh.keys;
        data := fresh.data;
        contents := fresh.contents;
        headers := fresh.headers;
        bytes := fresh.bytes;
        priorities := fresh.priorities;
        seqs := fresh.seqs;
    end if;
    if deliver_at > clock_timestamp() then
        select array_agg(
            postbus_data.schedule(entry, m.place::integer, deliver_at, ttl, m.key, m.data, m.header, m.bytes, m.priority) order by m.place
        )
        into seqs
        from unnest(keys, data, headers, bytes, priorities) with ordinality as m (key, data, header, bytes, priority, place);
        return case when fresh.answers is null then seqs else postbus_data.merge_answers(fresh.answers, seqs) end;
    end if;

    if seqs is null then
        select d.seqs, d.layout into seqs, entry.layout from postbus_data.draw_seqs(entry, message_count) as d;
    else
        entry.layout := fresh.layout;
    end if;
    perform postbus_data.insert_messages(
        entry, coalesce(fresh.published_at, clock_timestamp()), ttl, seqs, keys, contents, data, headers, bytes, priorities => priorities
    );
    return case when fresh.answers is null then seqs else postbus_data.merge_answers(fresh.answers, seqs) end;
end
$$;

create or replace function postbus_data.skip_duplicates(entry postbus_data.publish_target, batch postbus_data.publish_batch, is_scheduled boolean)
returns postbus_data.publish_batch
language plpgsql
volatile
as $$
/*
Find the messages of a batch to publish: not those whose id was published before and, in a stream with one message per key, only
the last one of each key, if its data has changed.

Returns  the remaining messages, with their seqs, and answers for the others; seqs is null when none remains.
Raises   PB400, as deduplicate, and for a message without a key where keys are needed.
Touches  the stream's tables of ids, the state of its keys (insert, update).
Locks    keys, then ids, each in their order: publishers of the same key or id wait for each other, and nobody else does. Seqs
         are drawn after the keys are locked, so that a later version has a higher one.
*/
declare
    is_versioned boolean := entry.one_message_per_key and is_scheduled is not true;
    message_count integer := coalesce(cardinality(batch.data), cardinality(batch.bytes));
    firsts bigint[];
    chosen integer[];
begin
    if entry.one_message_per_key and (batch.keys is null or array_position(batch.keys, null) is not null) then
        raise exception using
            errcode = 'PB400',
            message = format('%s is not allowed: the stream keeps one message per key, and this message has no key', postbus_data.message_name(
                case when message_count > 1 then coalesce(array_position(batch.keys, null), 1) end
            ));
    end if;
    if is_versioned then
        perform postbus_data.lock_keys(entry.stream_id, batch.keys);
    end if;
    if is_scheduled then
        batch.seqs := array_fill(0::bigint, array[message_count]);
    else
        select d.seqs, d.layout into batch.seqs, entry.layout from postbus_data.draw_seqs(entry, message_count) as d;
        batch.layout := entry.layout;
    end if;
    batch.published_at := clock_timestamp();
    if batch.dedup_ids is not null then
        firsts := postbus_data.deduplicate(entry.stream_id, batch.dedup_ids, batch.seqs);
        select array_agg(-f.seq order by f.place) into batch.answers from unnest(firsts) with ordinality as f (seq, place);
    else
        batch.answers := array_fill(null::bigint, array[message_count]);
    end if;
    if is_versioned then
        batch.answers := postbus_data.replace_versions(entry, batch);
    end if;

    select array_agg(a.place order by a.place) into chosen
    from unnest(batch.answers) with ordinality as a (answer, place)
    where a.answer is null;
    if chosen is null then
        batch.seqs := null;
    elsif cardinality(chosen) < message_count then
        select
            array_agg(batch.keys[c] order by c), array_agg(batch.data[c] order by c), array_agg(batch.contents[c] order by c),
            array_agg(batch.headers[c] order by c), array_agg(batch.bytes[c] order by c), array_agg(batch.seqs[c] order by c),
            case when batch.priorities is not null then array_agg(batch.priorities[c] order by c) end
        into batch.keys, batch.data, batch.contents, batch.headers, batch.bytes, batch.seqs, batch.priorities
        from unnest(chosen) as c;
    end if;
    return batch;
end
$$;

create or replace function postbus_data.purge_sqs_queue(name text)
returns boolean
language plpgsql
volatile
as $$
/*
Remove all messages of a queue, as PurgeQueue does: also those in flight and those that are delayed, and the ids that it remembers to find duplicates.
If the stream was there before its queue, its messages stay, and only the consumer passes over them.

Returns  whether it did: not within 60 seconds of the last time.
Raises   PB404 for an unknown queue, PB412 outside READ COMMITTED.
Touches  sqs_queue (update), scheduled, dedup_<id>_<n> (delete), and as purge and seek do.
Locks    the queue's row.
*/
declare
    queue postbus_data.sqs_queue := postbus_data.find_sqs_queue(name);
    reader postbus_data.consumer := (select c from postbus_data.consumer as c where c.id = queue.consumer_id);
    ids integer;
begin
    update postbus_data.sqs_queue as q
    set purged_at = clock_timestamp()
    where q.id = queue.id
        and (q.purged_at < clock_timestamp() - interval '1 minute') is not false;
    if not found then
        return false;
    end if;
    if queue.owns_stream then
        delete from postbus_data.scheduled as s where s.stream_id = queue.stream_id;
        for ids in select d.number from postbus_data.dedup as d where d.stream_id = queue.stream_id loop
            execute format('delete from postbus_data.dedup_%s_%s', queue.stream_id, ids);
        end loop;
        perform postbus.purge(reader.stream_name, everything => true);
    end if;
    perform postbus.seek(reader.stream_name, reader.name, 'latest');
    return true;
end
$$;

create or replace function postbus.redrive(
    stream text,
    consumer text,
    seqs bigint[] default null,
    key_pattern text default null,
    reason_like text default null,
    max_messages integer default 1000,
    to_stream text default null,
    caller postbus.caller default postbus.current_caller()
)
returns integer
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Give dead letters another chance, oldest first, at most max_messages of them: deliver them to their consumer again with attempts
counted from 1 and with the state that was saved, or publish them to a stream. See dead_letters for how to choose them.

They keep their priority. To limit the rate, call it for a few messages at a time.

Returns  how many were moved. A dead letter whose message was purged cannot go back to the consumer and stays; it can go to a
         stream.
Raises   PB400 for an argument out of range or an invalid pattern, PB403 without the right to consume (or to publish to
         to_stream), PB404 for an unknown stream, consumer or to_stream, PB409 when to_stream holds another data type; as
         publish, for to_stream.
Touches  dead_letter (delete), saved (delete) with to_stream, waiting and kept, or the log of to_stream (insert).
Locks    the dead letters it moves; those that another transaction has locked are passed over. With to_stream, as publish.
*/
declare
    reader postbus_data.consumer := postbus_data.permitted_consumer(caller, stream, consumer);
    source postbus_data.stream;
    letter postbus_data.dead_letter;
    partitions integer[];
    moved_seqs bigint[];
    missing bigint[];
begin
    select s.* into source from postbus_data.stream as s where s.id = reader.stream_id;
    -- Only their seqs: all together may be larger than what fits into memory.
    select array_agg(l.seq), array_agg(l.partition)
    into moved_seqs, partitions
    from (
        select d.seq, d.partition
        from postbus_data.match_dead(
            reader.id, seqs, key_pattern, reason_like,
            -- Skip the ones that cannot go back, so that they do not fill the page.
            case when to_stream is null then source.purged_seq - 1 else 0 end,
            max_messages
        ) as m
        join postbus_data.dead_letter as d on d.consumer_id = reader.id and d.seq = m.seq
        order by d.seq
        for update of d skip locked
    ) as l;
    if moved_seqs is null then
        return 0;
    end if;
    if to_stream is not null then
        for letter in
            select d.* from postbus_data.dead_letter as d where d.consumer_id = reader.id and d.seq = any (moved_seqs) order by d.seq
        loop
            perform postbus.publish(to_stream, letter.key, letter.data, letter.headers, letter.bytes, source.data_type, priority => postbus.priority_of(letter.partition), caller => caller);
        end loop;
        delete from postbus_data.saved as s where s.consumer_id = reader.id and s.seq = any (moved_seqs);
    else
        -- Their segments may be gone; the letters' copies are not.
        missing := postbus_data.find_missing(source.id, partitions, moved_seqs);
        insert into postbus_data.kept (stream_id, partition, seq, published_at, key, data, bytes, headers)
        select source.id, d.partition, d.seq, d.published_at, d.key, d.data, d.bytes, d.headers
        from postbus_data.dead_letter as d
        where d.consumer_id = reader.id
            and d.seq = any (missing);
        insert into postbus_data.waiting (consumer_id, partition, seq, key, attempts, due_at, reason)
        select reader.id, d.partition, d.seq, d.key, 0, clock_timestamp(), d.reason
        from postbus_data.dead_letter as d
        where d.consumer_id = reader.id
            and d.seq = any (moved_seqs)
        order by d.seq;
    end if;
    delete from postbus_data.dead_letter as d where d.consumer_id = reader.id and d.seq = any (moved_seqs);
    return cardinality(moved_seqs);
end
$$;

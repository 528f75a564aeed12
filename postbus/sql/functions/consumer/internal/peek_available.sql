create or replace function postbus_data.peek_available(reader postbus_data.consumer, after_seq bigint, max_messages integer)
returns setof postbus.peeked
language plpgsql
volatile
as $$
/* The messages that a consumer has not been given yet: the first max_messages of each partition above a seq. */
#variable_conflict use_variable
declare
    partition integer;
    horizon bigint := postbus_data.horizon_of(reader.stream_id);
    start_seq bigint;
    read_to_seq bigint;
    messages postbus.delivery[];
    next_priority integer := postbus_data.next_priority(reader);
begin
    select s.start_seq into start_seq from postbus_data.stream as s where s.id = reader.stream_id;
    for partition in select u from postbus_data.unread_partitions(reader) as u loop
        select p.read_to_seq into read_to_seq
        from postbus_data.position as p
        where p.consumer_id = reader.id
            and p.epoch = reader.epoch
            and p.partition = partition
        order by p.read_to_seq desc
        limit 1;
        messages := postbus_data.fetch_messages(
            reader.stream_id, partition, greatest(coalesce(read_to_seq, reader.start_after), after_seq, start_seq - 1), horizon, max_messages
        );
        return query
        select m.seq, m.partition, m.key, m.data, m.bytes, m.headers, m.published_at, 'available', 0, null::timestamptz,
            case when postbus.priority_of(m.partition) < next_priority then 'messages of a higher priority go first' end,
            null::text, null::timestamptz, 0, null::text, null::bytea, postbus.priority_of(m.partition)
        from unnest(messages) as m
        where postbus_data.passes(reader, m)
            and m.seq <> all (postbus_data.superseded(reader.stream_id, messages));
    end loop;
end
$$;

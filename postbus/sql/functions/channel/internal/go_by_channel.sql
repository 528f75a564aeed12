create or replace function postbus_data.go_by_channel(consumer_id integer)
returns void
language plpgsql
volatile
as $$
/*
Make a consumer one by channel, while it is in use: what is in flight then is listed, with keys, and counts towards limits from the first
claim on. There is no way back: positions pass over channels that have a turn waiting.

Touches  consumer, lease, waiting (update), due (delete), waiting, channel_position, position (insert; delete of the last one).
Locks    the mutexes of its partitions, redeliveries and sweeps, until the transaction ends. A receive that began before finds a position that it cannot use,
         and looks at the consumer again.
*/
#variable_conflict use_variable
declare
    reader postbus_data.consumer;
    place postbus_data.position;
    state postbus_data.channel_position;
    lock_class integer := postbus_data.consumer_lock_class(consumer_id);
begin
    update postbus_data.consumer as c set by_channel = true where c.id = consumer_id and not c.by_channel returning c.* into reader;
    if not found then
        return;
    end if;
    perform pg_advisory_xact_lock(lock_class, postbus_data.consumer_lock('sweep'));
    perform pg_advisory_xact_lock(lock_class, postbus_data.consumer_lock('redeliver'));
    perform pg_advisory_xact_lock(lock_class, p)
    from generate_series(reader.partition_base, reader.partition_base + reader.partition_count - 1) as p;

    with taken as (
        delete from postbus_data.due as d where d.consumer_id = reader.id returning d.*
    )
    insert into postbus_data.waiting (consumer_id, partition, seq, attempts, due_at, token)
    select t.consumer_id, t.partition, t.seq, t.attempts, clock_timestamp(), t.token
    from taken as t
    on conflict on constraint waiting_pkey do nothing;
    update postbus_data.waiting as w
    set key = (postbus_data.find_message(reader.stream_id, w.seq)).key
    where w.consumer_id = reader.id
        and w.key is null;
    update postbus_data.lease as l
    set keys = array(
        select (postbus_data.find_message(reader.stream_id, m.seq)).key from unnest(l.seqs) with ordinality as m (seq, place) order by m.place
    )
    where l.consumer_id + 0 = reader.id
        and l.epoch = reader.epoch
        and l.keys is null;
    for partition in reader.partition_base .. reader.partition_base + reader.partition_count - 1 loop
        place := postbus_data.position_of(reader, partition);
        place.segment := 0;
        place.leases := '{}';
        perform postbus_data.write_position(place, place.read_to_seq);
        state := postbus_data.channel_position_of(reader, partition);
        state.n := state.n + 1;
        state.leases := array(
            select distinct l.token
            from postbus_data.lease as l
            where l.consumer_id + 0 = reader.id
                and l.epoch = reader.epoch
                and l.partition = partition
        );
        insert into postbus_data.channel_position select state.*;
    end loop;
end
$$;

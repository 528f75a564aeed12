create or replace function postbus_data.finished_edge(reader postbus_data.consumer, horizon bigint)
returns bigint
language plpgsql
volatile
as $$
/*
The seq, at most the horizon, below which a consumer has read everything and has nothing in flight. Failed and parked messages
do not count: they are copied before their segment is dropped, so that one message that fails for days does not keep a whole
log.
*/
declare
    place integer;
    read_to_seq bigint;
    edge bigint := horizon + 1;
begin
    for place in select u from postbus_data.unread_partitions(reader) as u loop
        select p.read_to_seq into read_to_seq
        from postbus_data.position as p
        where p.consumer_id = reader.id
            and p.epoch = reader.epoch
            and p.partition = place
        order by p.read_to_seq desc
        limit 1;
        read_to_seq := coalesce(
            read_to_seq, greatest(reader.start_after, least(horizon, postbus_data.lane_start(reader.stream_id, place / 100000000 * 100000000)))
        );
        if read_to_seq < edge - 1 then
            edge := least(edge, (postbus_data.fetch_messages(reader.stream_id, place, read_to_seq, edge - 1, 1))[1].seq);
        end if;
    end loop;
    return least(
        edge,
        -- What was passed over, until it is its channel's turn.
        (select min(t.after_seq) + 1 from postbus_data.turn as t where t.consumer_id = reader.id and t.epoch = reader.epoch and reader.by_channel),
        (
            select min(m.seq)
            from postbus_data.lease as l
            cross join lateral unnest(l.seqs) as m (seq)
            where l.consumer_id = reader.id
                and l.epoch = reader.epoch
                and not exists (select from postbus_data.settled as s where s.token = l.token and s.seq = m.seq)
        )
    );
end
$$;

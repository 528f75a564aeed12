create or replace function postbus_data.fetch_messages(
    stream_id integer,
    partition integer,
    after_seq bigint,
    to_seq bigint,
    max_messages integer
)
returns postbus.delivery[]
language plpgsql
volatile
as $$
/*
The next messages of a partition with after_seq < seq <= to_seq, in order, from all segments that may hold some. Leases nothing:
they have no ack ids.
*/
#variable_conflict use_variable
declare
    claim postbus_data.receive_state;
    segment record;
    batch postbus_data.batch;
    found_here postbus.delivery[];
    messages postbus.delivery[];
begin
    claim.place.partition := partition;
    claim.after_seq := after_seq;
    claim.to_seq := to_seq;
    claim.wanted := max_messages;
    for segment in
        select g.number, g.after_seq
        from postbus_data.segment as g
        where g.stream_id = stream_id
            and (g.sealed_at is null or g.last_seq > after_seq)
            and g.after_seq < to_seq
        order by g.number
    loop
        exit when cardinality(messages) >= max_messages and messages[max_messages].seq <= segment.after_seq;
        execute 'select b.* from postbus_data.claim_' || stream_id || '_' || segment.number || '(null, $1) as b' into batch using claim;
        select array_agg(row(null, 1, m.seq, partition, m.key, m.data, m.bytes, m.headers, m.published_at, 0, null, null, null)::postbus.delivery)
        into found_here
        from unnest(batch.seqs, batch.keys, batch.data, batch.bytes, batch.headers, batch.published_at)
            as m (seq, key, data, bytes, headers, published_at);
        if messages is null then
            messages := found_here;
        elsif found_here is not null then
            messages := array(select m from unnest(messages || found_here) as m order by (m).seq limit max_messages);
        end if;
    end loop;
    return messages;
end
$$;

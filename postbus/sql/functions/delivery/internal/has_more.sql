create or replace function postbus_data.has_more(
    reader postbus_data.consumer,
    partition integer,
    start_seq bigint,
    horizon bigint
)
returns boolean
language plpgsql
volatile
as $$
/*
Whether a partition whose mutex another session holds may have messages for a consumer, judged by what is committed.

Two receives that find nothing hold the mutexes of the partitions that they have looked at, and each would wait for the other's.
Committed data is proof enough that there is nothing: a claim in progress only takes messages away, and everything published up
to the horizon, which an earlier statement has read, is visible.
*/
#variable_conflict use_variable
declare
    place postbus_data.position := postbus_data.position_of(reader, partition);
begin
    return place.parked_from is not null
        or (reader.ordering <> 'none' and exists (select from postbus_data.waiting as w where w.consumer_id = reader.id))
        or postbus_data.next_seqs(reader.stream_id, partition, greatest(place.read_to_seq, start_seq - 1), horizon, 1) is not null;
end
$$;

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
Whether a partition may have something for a consumer while somebody else has its mutex, by what is committed.

Two receives that find nothing hold the mutexes of the partitions that they have looked at, and each would wait for those of the other. What is committed is
proof enough that there is nothing: a claim under way only takes away, and what was published up to the horizon, which an earlier statement has found out,
is there to be seen.
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

create or replace function postbus.receive(
    stream text,
    consumer text,
    max_messages integer default 1,
    ack_wait interval default null,
    expected_type text default null
)
returns setof postbus.delivery
language plpgsql
volatile
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
set enable_sort = off
set search_path = pg_catalog, pg_temp
as $$
/*
Lease the next messages of a consumer: nobody else gets them until they are acked, nacked or the lease ends.

max_messages   1 to 10,000, in order within each partition.
ack_wait       how long they are leased; null takes the consumer's setting.
expected_type  refuse (PB409) if the stream's data type is another one; null asks nothing.

No rows mean that there was nothing: a partition that somebody else was just claiming is waited for, and what has expired or is due again
is swept up first.

Raises   PB400, PB404, PB409, PB412 outside READ COMMITTED, PB503 on a standby.
Touches  lease, position (insert), the consumer's other tables when it sweeps.
Locks    the mutex of each partition it takes from, until the transaction ends: keep it short, or others wait for those partitions.
*/
#variable_conflict use_variable
declare
    reader postbus_data.consumer := postbus_data.find_consumer(stream, consumer);
    claim postbus_data.claim := postbus_data.begin_claim(reader, stream, max_messages, ack_wait, expected_type);
    layout bigint := pg_sequence_last_value(to_regclass('postbus_data.layout_' || reader.stream_id));
    partition_base integer := (layout >> 11) & 16777215;
    partition_count integer := layout & 2047;
    first integer := floor(random() * partition_count);
    remaining integer := max_messages;
    wait_until timestamptz := clock_timestamp() + interval '100 milliseconds';
    busy boolean;
begin
    if reader.paused then
        return;
    end if;
    claim.quota := reader.max_ack_pending / (partition_count + 1);
    if claim.quota < 100 then
        -- Too few to share out among the partitions: one receive at a time looks at all that is in flight.
        claim.quota := null;
        remaining := postbus_data.room(reader, max_messages);
    end if;
    perform postbus_data.sweep_now_and_then(reader);

    while remaining > 0 loop
        claim := postbus_data.claim_due(reader, claim, remaining);
        busy := claim.busy;
        if claim.messages is not null then
            return query select m.* from unnest(claim.messages) as m;
            remaining := remaining - cardinality(claim.messages);
        end if;
        for step in 0 .. partition_count - 1 loop
            exit when remaining <= 0;
            claim := postbus_data.claim_partition(
                reader, claim, partition_base + mod(first + step, partition_count), remaining
            );
            busy := busy or claim.busy;
            if claim.messages is not null then
                return query select m.* from unnest(claim.messages) as m;
                remaining := remaining - cardinality(claim.messages);
            end if;
        end loop;
        exit when remaining < max_messages;

        -- Nothing. That has to be true of what others are just claiming, and of what has expired, before it is said.
        if busy then
            exit when clock_timestamp() > wait_until;
            perform pg_sleep(0.002);
        elsif postbus_data.sweep_consumer(reader) = 0 then
            exit;
        end if;
        claim.horizon := null;
    end loop;
end
$$;

create or replace function postbus_data.claim_channels(
    reader postbus_data.consumer,
    max_messages integer,
    ack_wait interval,
    expected_type text,
    begin_with integer
)
returns setof postbus_data.batch
language plpgsql
volatile
as $$
/*
What claim_batches does, for a consumer by channel: one that is fair, or whose stream has limits of channels.

Channels that have messages take turns within their partition, and a limit holds only its own channel.
*/
#variable_conflict use_variable
declare
    claim postbus_data.receive_state := postbus_data.begin_claim(reader, max_messages, ack_wait, expected_type);
    partition_count integer := postbus_data.layout_count(claim.layout);
    first integer := coalesce(begin_with - postbus_data.layout_base(claim.layout), floor(random() * partition_count)::integer);
    wait_until timestamptz := clock_timestamp() + interval '100 milliseconds';
    remaining integer := max_messages;
    busy_ones integer[];
    awaited integer[];
    partition integer;
begin
    if reader.expire_after is not null then
        perform postbus_data.note_use(reader);
    end if;
    if reader.paused then
        return;
    end if;
    if claim.quota is null then
        remaining := postbus_data.free_capacity(reader, max_messages);
    end if;
    perform case when random() < 0.1 then postbus_data.sweep_now_and_then(reader) end;
    while remaining > 0 loop
        busy_ones := '{}';
        for step in 0 .. partition_count - 1 loop
            partition := postbus_data.layout_base(claim.layout) + mod(first + step, partition_count);
            continue when not partition = any (awaited);
            claim := postbus_data.claim_channel_partition(reader, claim, partition, remaining);
            if claim.busy then
                busy_ones := busy_ones || partition;
            elsif (claim.batch).seqs is not null then
                return next claim.batch;
                remaining := remaining - cardinality((claim.batch).seqs);
            end if;
            exit when remaining <= 0;
        end loop;
        exit when remaining < max_messages;

        -- Nothing found. Before saying so, wait for the partitions that others hold, and sweep what has expired.
        if busy_ones <> '{}' then
            exit when clock_timestamp() > wait_until;
            awaited := busy_ones;
            perform pg_sleep(0.0005);
        else
            exit when postbus_data.sweep_consumer(reader) = 0;
            awaited := null;
        end if;
        claim.horizon := null;
    end loop;
end
$$;

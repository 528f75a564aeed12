create or replace function postbus_data.receive_with_decisions(
    reader postbus_data.consumer,
    max_messages integer,
    ack_wait interval,
    expected_type text,
    by_position boolean,
    begin_with integer
)
returns table (
    lease text, partition integer, seqs bigint[], attempts integer[], keys text[], data text[], bytes bytea[], headers jsonb[], published_at timestamptz[],
    saved json
)
language plpgsql
volatile
as $$
/*
The slow path of ack_and_receive, for groups and for receives that need decisions about individual messages.

Returns  batches. An attempt that is the last of its message, by the consumer's max_deliver, is negated. For saved, see saved_of: null unless
         messages are redelivered.

Raises  PB409 for a group that is not received from by position, or a consumer that is.
*/
begin
    if not by_position and reader.max_deliver is not null then
        return query
        select
            b.lease, b.partition, b.seqs,
            case
                when b.attempts is not null then array(
                    select case when a.attempt >= reader.max_deliver then -a.attempt else a.attempt end
                    from unnest(b.attempts) with ordinality as a (attempt, place)
                    order by a.place
                )
                when reader.max_deliver = 1 then array_fill(-1, array[cardinality(b.seqs)])
            end,
            b.keys, b.data, b.bytes, b.headers, b.published_at,
            case when b.attempts is not null then postbus_data.saved_of(reader.id, b.seqs) end
        from postbus_data.claim_batches(reader, max_messages, ack_wait, expected_type, begin_with) as b;
        return;
    elsif not by_position then
        return query
        select b.*, case when b.attempts is not null then postbus_data.saved_of(reader.id, b.seqs) end
        from postbus_data.claim_batches(reader, max_messages, ack_wait, expected_type, begin_with) as b;
        return;
    end if;
    perform postbus_data.find_group(reader.stream_name, reader.name);
    return query select b.*, null::json from postbus_data.consume(reader, max_messages, ack_wait, expected_type, begin_with) as b;
end
$$;

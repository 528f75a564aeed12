create or replace function postbus_data.begin_claim(
    reader postbus_data.consumer,
    max_messages integer,
    ack_wait interval,
    expected_type text
)
returns postbus_data.receive_state
language plpgsql
volatile
as $$
/*
Check the arguments and circumstances of a receive, and begin it. Hot: one statement.

Raises   PB400 for arguments out of range, PB404 for a stream that was dropped meanwhile, PB409 for a group or another data
         type, PB412 outside READ COMMITTED: with a snapshot that is kept, messages would be skipped or delivered twice.
*/
declare
    claim postbus_data.receive_state;
    one_message_per_key boolean;
begin
    if max_messages is null or max_messages not between 1 and 10000 then
        raise exception using
            errcode = 'PB400',
            message = format('max_messages = %s is not between 1 and 10000', coalesce(max_messages::text, 'null'));
    end if;
    if (ack_wait between interval '1 millisecond' and interval '7 days') is false then
        raise exception using
            errcode = 'PB400',
            message = format('ack_wait = %s is not between 1 millisecond and 7 days', ack_wait);
    end if;
    if reader.is_group then
        raise exception using
            errcode = 'PB409',
            message = format('"%s" of stream "%s" is a group', reader.name, reader.stream_name),
            hint = 'claim from it, or create a consumer of another name';
    end if;
    perform postbus_data.check_isolation();
    select
        s.data_type,
        s.start_seq,
        s.one_message_per_key,
        postbus_data.has_due(reader.id, reader.epoch)
    into claim.data_type, claim.start_seq, one_message_per_key, claim.has_due
    from postbus_data.stream as s
    where s.id = reader.stream_id;
    if expected_type <> claim.data_type then
        raise exception using
            errcode = 'PB409',
            message = format('stream "%s" holds %s, not %s', reader.stream_name, claim.data_type, expected_type);
    end if;
    claim.layout := postbus_data.reading_layout(reader);
    if claim.layout is null then
        -- The stream was dropped while this receive began.
        perform postbus_data.raise_unknown_stream(reader.stream_name);
    end if;
    claim.quota := reader.max_ack_pending / (postbus_data.layout_count(claim.layout) + 1);
    if claim.quota < 100 then
        -- The limit is too small to divide among the partitions: one receive at a time counts everything in flight.
        claim.quota := null;
    end if;
    claim.lease_until := clock_timestamp() + coalesce(ack_wait, reader.ack_wait);
    claim.busy := false;
    if one_message_per_key
        or num_nonnulls(reader.filter_key_regex, reader.filter_headers, reader.filter_headers_not, reader.filter_data) > 0
    then
        claim.scan := greatest(256, 4 * max_messages);
    end if;
    return claim;
end
$$;

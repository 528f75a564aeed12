create or replace function postbus_data.begin_claim(
    reader postbus_data.consumer,
    stream text,
    max_messages integer,
    ack_wait interval,
    expected_type text
)
returns postbus_data.claim
language plpgsql
volatile
as $$
/*
Check the arguments and circumstances of a receive, and begin its claim.

Raises   PB400 for arguments out of range, PB409 for another type of data, PB412 outside READ COMMITTED: under a snapshot that is kept,
         messages would be skipped or delivered twice.
*/
declare
    claim postbus_data.claim;
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
    perform postbus_data.check_isolation();
    select s.data_type, s.start_seq into claim.data_type, claim.start_seq from postbus_data.stream as s where s.id = reader.stream_id;
    if expected_type <> claim.data_type then
        raise exception using
            errcode = 'PB409',
            message = format('stream "%s" holds %s, not %s', stream, claim.data_type, expected_type);
    end if;
    claim.lease_until := clock_timestamp() + coalesce(ack_wait, reader.ack_wait);
    claim.busy := false;
    return claim;
end
$$;

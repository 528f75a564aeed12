create or replace function postbus_data.start_position(stream_id integer, "start" text, from_seq bigint, from_time timestamptz)
returns bigint
language plpgsql
volatile
as $$
/*
The seq after which to read, for a consumer that starts or seeks at
    earliest  the oldest message that is kept
    latest    what is published from now on
    a seq     that message
    a time    what was published at that time or later, see seq_before_time

Raises   PB400 unless exactly one of them is given.
*/
begin
    if num_nonnulls("start", from_seq, from_time) <> 1 or "start" not in ('earliest', 'latest') then
        raise exception using
            errcode = 'PB400',
            message = 'exactly one position is needed: "earliest", "latest", a seq or a time',
            constraint = 'which_position',
            hint = 'give exactly one of: start => ''earliest'' or ''latest'', from_seq, from_time';
    end if;
    return case
        when from_seq is not null then greatest(from_seq - 1, 0)
        when from_time is not null then postbus_data.seq_before_time(stream_id, from_time)
        when "start" = 'latest' then postbus_data.horizon_of(stream_id)
        else 0
    end;
end
$$;

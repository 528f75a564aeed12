create or replace function postbus_data.look_at_channels(
    reader postbus_data.consumer,
    claim postbus_data.channel_claim,
    after_seq bigint,
    to_seq bigint,
    scan integer,
    wanted integer,
    channel text,
    out looked postbus_data.fresh_messages,
    out segment integer
)
language plpgsql
volatile
as $$
/*
Look at new messages of a partition, or (with channel) at the next messages of one channel, with after_seq < seq <= to_seq: in the segment where the next ones
are, or in two, while late publishers may still write to the older one.

Returns  what was found, and the segment that has it; null for two.
*/
#variable_conflict use_variable
declare
    name text := case when channel is null then 'scan_channels' else 'read_channel' end;
    upto bigint := to_seq;
    next_after bigint;
    next_number integer;
    arguments text := '($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)';
begin
    segment := coalesce(
        (
            select g.number
            from postbus_data.segment as g
            where g.stream_id = reader.stream_id
                and g.last_seq > after_seq
            order by g.last_seq, g.number
            limit 1
        ),
        (
            select g.number
            from postbus_data.segment as g
            where g.stream_id = reader.stream_id
                and g.last_seq is null
            order by g.number
            limit 1
        )
    );
    select g.number, g.after_seq
    into next_number, next_after
    from postbus_data.segment as g
    where g.stream_id = reader.stream_id
        and g.number > segment
    order by g.number
    limit 1;
    -- The next segment may be prepared, and written to by nobody yet.
    if next_after <= after_seq and next_number <= postbus_data.layout_segment(pg_sequence_last_value(to_regclass('postbus_data.layout_' || reader.stream_id))) then
        upto := least(
            to_seq,
            (select min(g.after_seq) from postbus_data.segment as g where g.stream_id = reader.stream_id and g.number > next_number and g.after_seq > after_seq)
        );
        execute (
            select postbus_data.channel_statement(
                s, name,
                format(
                    '(select * from %s union all select * from %s)', postbus_data.log_table(s.id, segment), postbus_data.log_table(s.id, next_number)
                )
            )
            from postbus_data.stream as s
            where s.id = reader.stream_id
        )
        into looked
        using reader, (claim.place).partition, after_seq, upto, scan, wanted, channel, claim.in_flight, claim.now_at, claim.has_limits, claim.quantum;
        segment := null;
    else
        if next_after > after_seq then
            upto := least(to_seq, next_after);
        end if;
        execute 'select f.* from postbus_data.' || name || '_' || reader.stream_id || '_' || segment || arguments || ' as f'
        into looked
        using reader, (claim.place).partition, after_seq, upto, scan, wanted, channel, claim.in_flight, claim.now_at, claim.has_limits, claim.quantum;
    end if;
    looked.is_end := looked.is_end and upto = to_seq;
end
$$;

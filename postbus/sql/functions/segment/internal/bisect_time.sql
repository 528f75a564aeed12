create or replace function postbus_data.bisect_time(
    segment postbus_data.segment,
    partition integer,
    at timestamptz,
    out before_seq bigint,
    out since_seq bigint
)
language plpgsql
volatile
set enable_seqscan = off
set enable_bitmapscan = off
as $$
/*
Where a partition of a segment passes a time: the seq of the last message before it (the segment's lower bound if there is
none), and the seq of the first message at or after it (null if there is none). Both are null for a segment dropped meanwhile.
*/
declare
    high bigint;
    middle bigint;
    probe record;
begin
    before_seq := segment.after_seq;
    high := coalesce(
        segment.last_seq, postbus_data.sequence_value('postbus_data.seq_' || segment.stream_id::text)
    );
    while before_seq < high loop
        middle := before_seq + (high - before_seq) / 2;
        execute format(
            'select l.seq, l.published_at from %s as l where l.partition = $1 and l.seq > $2 order by l.seq limit 1',
            postbus_data.log_table(segment.stream_id, segment.number)
        ) into probe using partition, middle;
        if probe.seq <= high and probe.published_at < at then
            before_seq := probe.seq;
        else
            since_seq := least(since_seq, case when probe.published_at >= at then probe.seq end);
            high := middle;
        end if;
    end loop;
exception when undefined_table then
    before_seq := segment.after_seq;
    since_seq := null;
end
$$;

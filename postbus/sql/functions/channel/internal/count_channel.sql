create or replace function postbus_data.count_channel(
    reader postbus_data.consumer,
    partition integer,
    channel text,
    after_seq bigint,
    at_most integer,
    out message_count bigint,
    out estimate bigint
)
language plpgsql
stable
set enable_seqscan = off
set enable_bitmapscan = off
as $$
/*
How many messages of a channel wait for their turn: those above after_seq, up to the position of the partition. At most so many are counted; the estimate takes
the others to be as dense as these. A filter by data is not evaluated.
*/
#variable_conflict use_variable
declare
    upto bigint := (
        select p.read_to_seq
        from postbus_data.position as p
        where p.consumer_id = reader.id
            and p.epoch = reader.epoch
            and p.partition = partition
        order by p.read_to_seq desc
        limit 1
    );
    tokens integer;
    segment integer;
    here record;
begin
    message_count := 0;
    select s.channel_tokens, greatest(after_seq, s.start_seq - 1) into tokens, after_seq from postbus_data.stream as s where s.id = reader.stream_id;
    for segment in
        select g.number
        from postbus_data.segment as g
        where g.stream_id = reader.stream_id
            and (g.last_seq > after_seq or g.sealed_at is null)
            and g.after_seq < upto
        order by g.number
    loop
        execute format(
            'select count(*), max(m.seq) as last_seq
            from (
                select l.seq
                from %s as l
                where %s = $1
                    and l.seq > $2
                    and l.seq <= $3
                    and (l.expires_at is null or l.expires_at > clock_timestamp())
                    and ($5.filter_key_regex is null or coalesce(l.key ~ $5.filter_key_regex, false))
                    and ($5.filter_headers is null or coalesce(l.headers @> $5.filter_headers, false))
                    and ($5.filter_headers_not is null or not coalesce(l.headers @> any ($5.filter_headers_not), false))
                order by l.seq
                limit $4
            ) as m',
            postbus_data.log_table(reader.stream_id, segment), postbus_data.channel_expression('l.key', tokens)
        )
        into here
        using channel, after_seq, upto, at_most - message_count, reader;
        message_count := message_count + here.count;
        exit when message_count >= at_most;
    end loop;
    estimate := message_count;
    if message_count >= at_most then
        estimate := message_count + (message_count * (upto - here.last_seq)::numeric / greatest(1, here.last_seq - after_seq))::bigint;
    end if;
end
$$;

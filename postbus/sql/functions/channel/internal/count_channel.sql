create or replace function postbus_data.count_channel(
    reader postbus_data.consumer,
    partition integer,
    channel text,
    after_seq bigint,
    at_most integer
)
returns bigint
language plpgsql
stable
set enable_seqscan = off
set enable_bitmapscan = off
as $$
/*
How many messages of a channel wait for their turn: those above after_seq, up to the position of the partition, and those due for redelivery. At most so many
are counted.
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
    start_seq bigint;
    found_count bigint;
    here bigint;
    segment integer;
begin
    select s.channel_tokens, s.start_seq into tokens, start_seq from postbus_data.stream as s where s.id = reader.stream_id;
    select count(*)
    into found_count
    from (
        select
        from postbus_data.due as d
        where d.consumer_id + 0 = reader.id
            and d.epoch = reader.epoch
            and d.channel = channel
        limit at_most
    ) as d;
    for segment in
        select g.number
        from postbus_data.segment as g
        where g.stream_id = reader.stream_id
            and (g.last_seq > after_seq or g.sealed_at is null)
            and g.after_seq < upto
        order by g.number
    loop
        exit when found_count >= at_most;
        execute format(
            'select count(*)
            from (
                select
                from %s as l
                where %s = $1
                    and l.seq > $2
                    and l.seq <= $3
                    and (l.expires_at is null or l.expires_at > clock_timestamp())
                    and ($5.filter_key_regex is null or coalesce(l.key ~ $5.filter_key_regex, false))
                    and ($5.filter_headers is null or coalesce(l.headers @> $5.filter_headers, false))
                    and ($5.filter_headers_not is null or not coalesce(l.headers @> any ($5.filter_headers_not), false))
                limit $4
            ) as m',
            postbus_data.log_table(reader.stream_id, segment), postbus_data.channel_expression('l.key', tokens)
        )
        into here
        using channel, greatest(after_seq, start_seq - 1), upto, at_most - found_count, reader;
        found_count := found_count + here;
    end loop;
    return found_count;
end
$$;

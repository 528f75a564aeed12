create or replace function postbus_data.peek_lagging(reader postbus_data.consumer, after_seq bigint, max_messages integer)
returns setof postbus.peeked
language plpgsql
volatile
as $$
/*
The messages that a consumer by channel has passed over, to be delivered when it is their channel's turn: the first max_messages of each partition above a seq.
Of each segment, 10,000 messages are looked at.
*/
#variable_conflict use_variable
declare
    place record;
    segment record;
    found_here record;
    message postbus.delivery;
begin
    for place in
        select t.partition, min(t.after_seq) as after_seq, postbus_data.position_of(reader, t.partition) as position
        from postbus_data.turn as t
        where t.consumer_id = reader.id
            and t.epoch = reader.epoch
        group by t.partition
    loop
        for segment in
            select
                postbus_data.log_table(g.stream_id, g.number) as log, s.data_type, s.channel_tokens,
                greatest(place.after_seq, after_seq, s.start_seq - 1) as after_seq
            from postbus_data.segment as g
            join postbus_data.stream as s on s.id = g.stream_id
            where g.stream_id = reader.stream_id
                and (g.last_seq > greatest(place.after_seq, after_seq) or g.sealed_at is null)
                and g.after_seq < (place.position).read_to_seq
            order by g.number
        loop
            for found_here in
                execute format(
                    'select row(null, null, l.seq, l.partition, l.key, %s, l.headers, l.published_at, 0, null, null, 4)::postbus.delivery as message,
                        postbus_data.turn_reason(t, clock_timestamp()) as reason
                    from (select l.* from %s as l where l.partition = $2 and l.seq > $3 and l.seq <= $4 order by l.seq limit 10000) as l
                    join postbus_data.turn as t on t.consumer_id = $1.id
                        and t.epoch = $1.epoch
                        and t.partition = $2
                        and t.channel = postbus_data.channel_of(l.key, $5)
                        and t.after_seq < l.seq
                    where l.expires_at is null or l.expires_at > clock_timestamp()
                    order by l.seq
                    limit $6',
                    case when segment.data_type = 'bytes' then 'null, l.data' else 'l.data::text, null' end,
                    segment.log
                )
                using reader, place.partition, segment.after_seq, (place.position).read_to_seq, segment.channel_tokens, max_messages
            loop
                message := found_here.message;
                if postbus_data.passes(reader, message) then
                    return query
                    select
                        message.seq, message.partition, message.key, message.data, message.bytes, message.headers, message.published_at, 'available', 0,
                        null::timestamptz, found_here.reason, null::text, null::timestamptz, 0, null::text, null::bytea, 4;
                end if;
            end loop;
        end loop;
    end loop;
end
$$;

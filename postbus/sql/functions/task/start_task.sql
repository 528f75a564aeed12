create or replace function postbus.start_task(
    stream text,
    consumer text,
    kind text,
    key_pattern text default null,
    reason_like text default null,
    to_stream text default null,
    from_seq bigint default null,
    to_seq bigint default null,
    from_time timestamptz default null,
    to_time timestamptz default null,
    rate double precision default null
)
returns bigint
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Begin to redrive or discard dead letters of a consumer, to replay messages to it, or to move its messages to another stream, in the background: in steps, by whichever process
does the upkeep (a server, an open bus, or whoever calls run_tasks). It goes on when processes are killed.

kind          redrive, discard, replay or move. The other arguments choose messages as the functions of these names do. A move publishes
              each message that the consumer could receive to another stream, and acks it, in one transaction.
key_pattern   only messages whose key matches.
reason_like   only dead letters whose reason matches this LIKE pattern; not for a replay.
to_stream     for a redrive: publish them to this stream instead. For a move: to this stream; null: to the stream whose dead letter each is.
from_seq, to_seq, from_time, to_time
              for a replay: only messages of this range.
rate          the largest number of messages per second; null: as fast as it goes.

Returns  the number of the task. See list_tasks for its progress, cancel_task to end it.
Raises   PB400 for an argument out of range or one that the kind does not take, PB404 for an unknown stream, consumer or to_stream, PB409
         when to_stream holds another data type.
Touches  task (insert).
*/
#variable_conflict use_variable
declare
    reader postbus_data.consumer := postbus_data.find_consumer(stream, consumer);
    source_type text := (select s.data_type from postbus_data.stream as s where s.id = reader.stream_id);
    -- Raises if the pattern is not valid.
    checked text := postbus_data.pattern_regex(key_pattern);
    has_range boolean := num_nonnulls(from_seq, to_seq, from_time, to_time) > 0;
    total bigint;
    made bigint;
begin
    if (kind in ('redrive', 'discard', 'replay', 'move')) is not true then
        raise exception using errcode = 'PB400', message = format('kind = %L is not a task', kind), hint = 'it is redrive, discard, replay or move';
    end if;
    if rate is not null and (rate between 0.001 and 1000000) is not true then
        raise exception using errcode = 'PB400', message = format('rate = %s is not between 0.001 and 1000000', rate);
    end if;
    if reader.is_group then
        raise exception using
            errcode = 'PB409', message = format('%s is a group, which has no dead letters and nothing to replay', consumer),
            hint = 'move its position: postbus.seek';
    end if;
    if (kind = 'replay' and num_nonnulls(reason_like, to_stream) > 0) or (kind <> 'replay' and has_range) or (kind = 'discard' and to_stream is not null)
        or (kind = 'move' and num_nonnulls(key_pattern, reason_like) > 0)
    then
        raise exception using
            errcode = 'PB400',
            message = format('a %s does not take one of these arguments', kind),
            hint = 'a replay takes a range and key_pattern; a redrive key_pattern, reason_like and to_stream; a discard key_pattern and reason_like; a move to_stream';
    end if;
    if kind = 'move' and to_stream = reader.stream_name then
        raise exception using
            errcode = 'PB400', message = format('to_stream = "%s" is the stream that messages are moved from', to_stream),
            hint = 'name another stream';
    end if;
    if to_stream is not null and (select s.data_type from postbus_data.stream as s where s.id = postbus_data.stream_id(to_stream)) <> source_type then
        raise exception using errcode = 'PB409', message = format('stream "%s" does not hold %s', to_stream, source_type);
    end if;
    if kind = 'move' then
        select b.unread + b.waiting into total from postbus_data.count_backlog(reader.id) as b;
    elsif kind <> 'replay' and checked is null and reason_like is null then
        select count(*)
        into total
        from (select from postbus_data.dead_letter as d where d.consumer_id = reader.id limit 10000) as d;
        -- More are not counted.
        total := nullif(total, 10000);
    end if;
    insert into postbus_data.task (
        consumer_id, kind, key_pattern, reason_like, to_stream, from_seq, to_seq, from_time, to_time, rate, total_estimate, created_by
    )
    values (reader.id, kind, key_pattern, reason_like, to_stream, from_seq, to_seq, from_time, to_time, rate, total, session_user)
    returning id into made;
    return made;
end
$$;

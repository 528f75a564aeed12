create or replace function postbus.replay(
    stream text,
    consumer text,
    from_seq bigint default null,
    to_seq bigint default null,
    from_time timestamptz default null,
    to_time timestamptz default null,
    key_pattern text default null,
    max_messages integer default 1000,
    resume text default null
)
returns table (replayed integer, next_resume text)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Deliver messages again that a consumer has already received, while it continues with new ones: the messages of a range of seqs or
times whose key matches.

Their attempts are counted from 1 again. Messages that are in flight, waiting or not delivered yet are left alone, and so are
dead letters, which are redriven instead. In order "key", a replayed message comes before later messages of its key that are
still to come.

It takes one page at a time: call it again with next_resume until that is null.

Returns  how many messages of the page are delivered again, and where to continue.
Raises   PB400 for an argument out of range, PB404 for an unknown stream or consumer, PB412 outside READ COMMITTED, PB503 on a
         standby.
Touches  waiting (insert).
*/
#variable_conflict use_column
declare
    reader postbus_data.consumer := postbus_data.find_consumer(stream, consumer);
begin
    with page as materialized (
        select m.seq, m.partition, m.key, m.resume
        from postbus.read(
            stream, from_seq => replay.from_seq, to_seq => replay.to_seq, from_time => replay.from_time, to_time => replay.to_time,
            key_pattern => replay.key_pattern, max_messages => replay.max_messages, resume => replay.resume
        ) as m
    ),
    again as (
        insert into postbus_data.waiting (consumer_id, partition, seq, key, attempts, due_at, reason)
        select reader.id, p.partition, p.seq, p.key, 0, clock_timestamp(), 'replayed'
        from page as p
        where p.seq <= (
                select h.read_to_seq
                from postbus_data.position as h
                where h.consumer_id = reader.id
                    and h.epoch = reader.epoch
                    and h.partition = p.partition
                order by h.read_to_seq desc
                limit 1
            )
            and not exists (
                select
                from postbus_data.lease as l
                where l.consumer_id = reader.id
                    and l.epoch = reader.epoch
                    and p.seq = any (l.seqs)
                    and not exists (select from postbus_data.settled as s where s.token = l.token and s.seq = p.seq)
            )
            and not exists (
                select from postbus_data.due as d where d.consumer_id = reader.id and d.epoch = reader.epoch and d.seq = p.seq
            )
            and not exists (
                select
                from postbus_data.parked as k
                where k.consumer_id = reader.id
                    and k.epoch = reader.epoch
                    and k.partition = p.partition
                    and k.seq = p.seq
            )
            and not exists (select from postbus_data.dead_letter as d where d.consumer_id = reader.id and d.seq = p.seq)
            -- Passed over, to be delivered when it is its channel's turn.
            and not (
                reader.by_channel
                and exists (
                    select
                    from postbus_data.stream as s
                    join postbus_data.turn as t on t.consumer_id = reader.id
                        and t.epoch = reader.epoch
                        and t.partition = p.partition
                        and t.channel = postbus_data.channel_of(p.key, s.channel_tokens)
                        and t.after_seq < p.seq
                    where s.id = reader.stream_id
                )
            )
        on conflict on constraint waiting_pkey do nothing
        returning seq
    )
    select (select count(*) from again)::integer, (select p.resume from page as p where p.resume is not null limit 1)
    into replayed, next_resume;
    return next;
end
$$;

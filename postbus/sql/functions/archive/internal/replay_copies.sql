create or replace function postbus_data.replay_copies(
    pipeline text,
    run uuid,
    stream text,
    consumer text,
    to_seq bigint,
    partitions integer[],
    seqs bigint[],
    published_at timestamptz[],
    keys text[],
    data text[],
    headers jsonb[],
    bytes bytea[]
)
returns bigint
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
/*
Deliver messages of an archive to one consumer, and record in the same transaction that its pipeline has reached to_seq. So each
message is delivered once, even if the pipeline is killed and run again.

Messages that the log no longer has are copied to the table kept. A message that the consumer still gets from the log, holds, or
has buried is left alone, and so is one that does not pass its filter.

Returns  how many messages are delivered; null when another run has replaced this one.
Raises   PB404 for an unknown stream or consumer.
Touches  kept, waiting (insert), pipeline (update).
*/
#variable_conflict use_column
declare
    reader postbus_data.consumer := postbus_data.find_consumer(stream, consumer);
    data_type text;
    first_kept bigint;
    present bigint[];
    delivered bigint;
begin
    update postbus_data.pipeline as p
    set position_seq = replay_copies.to_seq
    where p.name = pipeline
        and p.run = replay_copies.run;
    if not found then
        return null;
    end if;
    select s.data_type, s.start_seq into data_type, first_kept from postbus_data.stream as s where s.id = reader.stream_id;
    -- Also in a segment that is purged and not dropped yet.
    select array_agg(d.seq)
    into present
    from (
        select m.partition, array_agg(m.seq) as seqs, array_agg(1) as attempts
        from unnest(partitions, replay_copies.seqs) as m (partition, seq)
        group by m.partition
    ) as p
    cross join lateral unnest(postbus_data.fetch_named(reader.stream_id, data_type, p.partition, p.seqs, p.attempts, 0)) as d;

    with chosen as materialized (
        select m.*
        from unnest(partitions, seqs, replay_copies.published_at, keys, replay_copies.data, replay_copies.headers, replay_copies.bytes)
            as m (partition, seq, published_at, key, data, headers, bytes)
        where m.seq <= greatest(
                coalesce(
                    (
                        select h.read_to_seq
                        from postbus_data.position as h
                        where h.consumer_id = reader.id
                            and h.epoch = reader.epoch
                            and h.partition = m.partition
                        order by h.read_to_seq desc
                        limit 1
                    ),
                    reader.start_after
                ),
                -- What retention has purged, receive passes over, although the consumer has not read it.
                first_kept - 1
            )
            and postbus_data.passes(
                reader, row(null, 1, m.seq, m.partition, m.key, m.data, m.bytes, m.headers, m.published_at, 0, null, null, null)::postbus.delivery
            )
            and not exists (
                select
                from postbus_data.lease as l
                where l.consumer_id = reader.id
                    and l.epoch = reader.epoch
                    and m.seq = any (l.seqs)
                    and not exists (select from postbus_data.settled as s where s.token = l.token and s.seq = m.seq)
            )
            and not exists (
                select from postbus_data.due as d where d.consumer_id = reader.id and d.epoch = reader.epoch and d.seq = m.seq
            )
            and not exists (
                select
                from postbus_data.parked as k
                where k.consumer_id = reader.id
                    and k.epoch = reader.epoch
                    and k.partition = m.partition
                    and k.seq = m.seq
            )
            and not exists (select from postbus_data.dead_letter as d where d.consumer_id = reader.id and d.seq = m.seq)
    ),
    copies as (
        insert into postbus_data.kept (stream_id, partition, seq, published_at, key, data, bytes, headers)
        select reader.stream_id, m.partition, m.seq, m.published_at, m.key, m.data, m.bytes, m.headers
        from chosen as m
        where m.seq <> all (coalesce(present, '{}'))
        on conflict do nothing
    ),
    waiting as (
        insert into postbus_data.waiting (consumer_id, partition, seq, key, attempts, due_at, reason)
        select reader.id, m.partition, m.seq, m.key, 0, clock_timestamp(), 'replayed'
        from chosen as m
        on conflict on constraint waiting_pkey do nothing
        returning seq
    )
    select count(*) into delivered from waiting;
    return delivered;
end
$$;

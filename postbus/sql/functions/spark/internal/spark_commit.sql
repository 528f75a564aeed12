create or replace function postbus_data.spark_commit(
    stream text,
    consumer text,
    seq bigint,
    caller postbus.caller default postbus.current_caller()
)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Record that a streaming query has processed a stream up to a seq, as the position of a consumer, which stats shows. A consumer
that does not exist is created if the caller owns Postbus. The position never moves back.

Raises   PB403, PB404, PB409 when workers receive from that consumer.
Touches  consumer (insert), position (insert, delete).
Locks    the mutex of each partition.
*/
declare
    reader postbus_data.consumer;
    partition_base integer;
    moved bigint;
    place integer;
begin
    perform postbus_data.permitted_stream(caller, stream, 'consume');
    if not exists (
        select from postbus_data.consumer as c where c.stream_name = stream and c.name = consumer
    ) then
        perform postbus_data.permitted_stream(caller, stream, 'manage');
        begin
            perform postbus.create_consumer(stream, consumer);
        exception when sqlstate 'PB409' then
            null; -- Another query was faster.
        end;
    end if;
    reader := postbus_data.find_consumer(stream, consumer);
    if exists (select from postbus_data.lease as l where l.consumer_id = reader.id) then
        raise exception using
            errcode = 'PB409',
            message = format('consumer "%s" of stream "%s" has messages in flight: workers receive from it', consumer, stream),
            hint = 'give the streaming query its own consumer';
    end if;
    loop
        for place in select p from postbus_data.segment_partitions(reader.stream_id, reader.partition_base, reader.partition_count) as p order by p loop
            perform pg_advisory_xact_lock(postbus_data.consumer_lock_class(reader.id), mod(place, 100000000));
            insert into postbus_data.position (consumer_id, epoch, partition, read_to_seq, horizon, pending_bound)
            select reader.id, reader.epoch, place, spark_commit.seq, spark_commit.seq, 0
            where not exists (
                select
                from postbus_data.position as p
                where p.consumer_id = reader.id
                    and p.epoch = reader.epoch
                    and p.partition = place
                    and p.read_to_seq >= spark_commit.seq
            )
            returning read_to_seq into moved;
            delete from postbus_data.position as p
            where p.consumer_id = reader.id
                and p.epoch = reader.epoch
                and p.partition = place
                and p.read_to_seq < moved;
        end loop;
        partition_base := reader.partition_base;
        reader := postbus_data.change_layout(reader);
        exit when reader.partition_base = partition_base;
    end loop;
end
$$;

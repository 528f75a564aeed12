create or replace function postbus_data.publish_source(
    source_id integer,
    epoch integer,
    after_lsn pg_lsn,
    to_lsn pg_lsn,
    committed_at timestamptz,
    keys text[],
    data text[],
    attempt uuid default null,
    staged_count bigint default 0
)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
/*
Publish whole transactions of a source, and record in the same transaction how far that is. If the position is not where the reader
believes it to be, another one has published: nothing happens then.

keys, data             the messages, at most 10,000.
attempt, staged_count  instead of these: messages that were staged by spark_stage, and how many.

Raises   PB409 when the position is elsewhere, PB503 when staged messages are gone, and as publish_many.
Touches  source_position (insert, delete), spark_staging (delete), the current segment of the stream (insert).
Locks    the source, and the stream's horizon, shared, until the transaction ends.
*/
declare
    stream_name text;
    current_lsn pg_lsn;
    staged postbus_data.spark_staging;
    published bigint := 0;
begin
    select t.name into stream_name
    from postbus_data.source as s
    join postbus_data.stream as t on t.id = s.stream_id
    where s.id = publish_source.source_id
        and s.epoch = publish_source.epoch
    for no key update of s;
    -- A statement of its own, whose snapshot is younger than the lock.
    current_lsn := postbus_data.source_position_of(source_id, epoch);
    if stream_name is null or current_lsn is distinct from after_lsn then
        raise exception using
            errcode = 'PB409',
            message = format('the position of the source is %s and not %s: another reader has published', coalesce(current_lsn::text, 'gone'), after_lsn);
    end if;
    if to_lsn > after_lsn then
        insert into postbus_data.source_position (source_id, epoch, lsn, committed_at)
        select
            publish_source.source_id, publish_source.epoch, to_lsn,
            coalesce(
                publish_source.committed_at,
                (select p.committed_at from postbus_data.source_position as p where (p.source_id, p.epoch, p.lsn) = (publish_source.source_id, publish_source.epoch, after_lsn))
            );
        delete from postbus_data.source_position as p
        where p.source_id = publish_source.source_id
            and p.epoch = publish_source.epoch
            and p.lsn <= after_lsn;
    end if;
    if cardinality(keys) > 0 then
        perform postbus.publish_many(stream_name, keys, data);
    end if;
    if attempt is null then
        return;
    end if;
    for staged in
        select s.*
        from postbus_data.spark_staging as s
        where s.attempt = publish_source.attempt
        order by s.chunk
    loop
        perform postbus_data.spark_publish_chunk(stream_name, staged);
        published := published + staged.message_count;
    end loop;
    if published <> staged_count then
        raise exception using
            errcode = 'PB503',
            message = format('of %s staged changes %s are left', staged_count, published),
            hint = 'Postgres was restarted; the reader begins the transaction again';
    end if;
    delete from postbus_data.spark_staging as s where s.attempt = publish_source.attempt;
end
$$;

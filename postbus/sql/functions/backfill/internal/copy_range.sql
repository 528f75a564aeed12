create or replace function postbus_data.copy_range(stream text, snapshot_id bigint, writer text, number integer, messages text)
returns bigint
language plpgsql
volatile
as $$
/*
Publish a range of a backfill whose source is this database, and record that it is done. Its rows do not leave the server.

messages  the query that reads the rows, as key, data (JSON, text or bytes) and problem. This function has its caller's
          search_path, so that the query means the same here as to the caller; every other name in it is qualified.

Returns  how many messages were published. Null when the range cannot be published this way, and the caller has to roll back: a
         row cannot be published, the stream keeps one message per key or has channels, or somebody has published the range since the
         transaction's snapshot.
Touches  backfill_range (update), the current segment of the stream (insert).
Locks    the range, and the horizon of the stream, shared, until the transaction ends.

The transaction runs at the snapshot that is read. Whatever must be current comes from sequences, locks and updates.
*/
declare
    entry postbus_data.publish_target;
    layout bigint;
    message_count bigint;
begin
    begin
        perform from postbus_data.backfill_range as r
        where r.writer = copy_range.writer
            and r.number = copy_range.number
            and r.done_at is null
        for update;
        if not found then
            return null;
        end if;
    exception when serialization_failure then
        return null;
    end;
    entry := postbus_data.begin_publish(stream, null);
    if entry.one_message_per_key or entry.channel_tokens is not null then
        return null;
    end if;
    loop
        begin
            execute pg_catalog.format(
                'insert into postbus_data.log_%s_%s (seq, published_at, partition, key, data)
                select
                    m.seq,
                    pg_catalog.clock_timestamp(),
                    $1 + pg_catalog.mod(
                        (pg_catalog.get_byte(m.hash, 0) << 16) | (pg_catalog.get_byte(m.hash, 1) << 8) | pg_catalog.get_byte(m.hash, 2), $2
                    ),
                    m.key,
                    m.data::%s
                from (
                    select
                        pg_catalog.nextval($3) as seq,
                        pg_catalog.sha256(pg_catalog.convert_to(q.key, ''UTF8''::pg_catalog.name)) as hash,
                        case
                            when q.problem is null and pg_catalog.octet_length(q.data%s) <= $4 then q.key
                            else postbus_data.raise_unpublishable()
                        end as key,
                        q.data
                    from (%s) as q
                    offset 0
                ) as m',
                entry.stream_id,
                postbus_data.layout_segment(entry.layout),
                case entry.data_type when 'bytes' then 'pg_catalog.bytea' else 'pg_catalog.' || entry.data_type end,
                case when entry.data_type <> 'bytes' then '::pg_catalog.text' end,
                messages
            )
            using postbus_data.layout_base(entry.layout), postbus_data.layout_count(entry.layout), entry.sequence, entry.max_message_bytes;
            get diagnostics message_count = row_count;
            layout := pg_catalog.pg_sequence_last_value(pg_catalog.to_regclass('postbus_data.layout_' || entry.stream_id::text));
            if layout <> entry.layout then
                -- A new segment began while seqs were drawn: draw again, see draw_seqs.
                raise exception using errcode = 'PB001', message = 'the layout has changed';
            end if;
            exit;
        exception
            when sqlstate 'PB001' then
                entry.layout := layout;
            when sqlstate 'PB002' then
                return null;
        end;
    end loop;
    perform postbus_data.end_range(snapshot_id, writer, number, message_count, 0);
    return message_count;
end
$$;

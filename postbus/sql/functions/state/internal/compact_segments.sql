create or replace function postbus_data.compact_segments(stream_id integer, sequence regclass)
returns integer
language plpgsql
volatile
as $$
/*
In a stream with one message per key: rewrite a sealed segment without replaced versions, when at least half of it consists of
them.

A segment is examined again when the stream has grown by as many messages as it has keys, or by a thousand, so that the work per
message is bounded. One segment at a time.

Not done while a consumer has keep_unread, as the archive has: it is to see every version.

Its caller holds the stream's maintenance mutex. Messages that consumers hold are copied first. A reader in a long transaction
puts it off.
Returns  how many segments were examined.
Touches  segment (update), kept (insert); replaces the segment's table.
*/
declare
    last_value bigint := pg_sequence_last_value(sequence);
    old_log text;
    new_log text;
    chosen integer;
    message_count bigint;
    live_count bigint;
begin
    if to_regclass('postbus_data.state_' || stream_id) is null
        or exists (select from postbus_data.consumer as c where c.stream_id = compact_segments.stream_id and c.keep_unread)
    then
        return 0;
    end if;
    select g.number into chosen
    from postbus_data.segment as g
    join postbus_data.stream as s on s.id = g.stream_id
    where g.stream_id = compact_segments.stream_id
        and g.sealed_at is not null
        and g.last_seq >= s.start_seq
        and last_value - coalesce(g.compacted_at_seq, g.last_seq) >= greatest(
            1000, (select c.reltuples from pg_class as c where c.oid = to_regclass('postbus_data.state_' || compact_segments.stream_id))
        )
    order by g.number
    limit 1;
    if chosen is null then
        return 0;
    end if;
    old_log := postbus_data.log_table(stream_id, chosen);
    new_log := format('%s_new', old_log);
    execute format(
        'select count(*), count(*) filter (
            where exists (select from postbus_data.state_%s as t where t.key = l.key and t.seq = l.seq)
        ) from %s as l',
        stream_id, old_log
    ) into message_count, live_count;
    if live_count * 2 <= message_count and message_count > 0 then
        begin
            execute format('create table %s (like %s including all)', new_log, old_log);
            execute format(
                'insert into %s
                select l.*
                from %s as l
                where exists (select from postbus_data.state_%s as t where t.key = l.key and t.seq = l.seq)',
                new_log, old_log, stream_id
            );
            execute format('lock table %s in access exclusive mode nowait', old_log);
            perform postbus_data.copy_held_messages(stream_id, chosen);
            execute format('drop table %s', old_log);
            execute format('alter table %s rename to log_%s_%s', new_log, stream_id, chosen);
            execute format('alter index postbus_data.log_%1$s_%2$s_new_pkey rename to log_%1$s_%2$s_pkey', stream_id, chosen);
            perform postbus_data.apply_grants(stream_id);
        exception when lock_not_available then
            return 0;
        end;
    end if;
    update postbus_data.segment as g
    set compacted_at_seq = last_value
    where g.stream_id = compact_segments.stream_id
        and g.number = chosen;
    return 1;
end
$$;

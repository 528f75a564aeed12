create or replace function postbus.stream_info(stream text, caller postbus.caller default postbus.current_caller())
returns postbus.stream_info
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
A stream's settings and size.

start_seq         messages below this seq are gone.
last_seq          the highest seq given out, perhaps to a message that is not committed or never will be.
message_estimate  how many messages it holds: exact up to 1,000, beyond by Postgres's own statistics, a second or so late.
bytes             what the log takes on disk.
scheduled         how many messages wait for their time, which is not in the log; 10,000 means that many or more. next_scheduled_at is when
                  the next of them is due.

Raises   PB404 for an unknown stream or one on which the caller has no right.
*/
declare
    found_id integer := postbus_data.permitted_stream(caller, stream, 'publish', 'consume', 'read');
    settings postbus_data.stream;
    info postbus.stream_info;
begin
    settings := (select s from postbus_data.stream as s where s.id = found_id);
    info.name := settings.name;
    info.id := settings.id;
    info.is_full := settings.is_full;
    info.start_seq := settings.start_seq;
    info.created_at := settings.created_at;
    info.last_seq := pg_sequence_last_value(to_regclass('postbus_data.seq_' || found_id));
    info.partitions := postbus_data.layout_count(pg_sequence_last_value(to_regclass('postbus_data.layout_' || found_id)));
    -- <stream settings: answers>
    info.data_type := settings.data_type;
    info.one_message_per_key := settings.one_message_per_key;
    info.channel_tokens := settings.channel_tokens;
    info.max_message_bytes := settings.max_message_bytes;
    info.segment_bytes := settings.segment_bytes;
    info.segment_age := settings.segment_age;
    info.retain_up_to := settings.retain_up_to;
    info.retain_at_least := settings.retain_at_least;
    info.max_messages := settings.max_messages;
    info.max_storage := settings.max_storage;
    info.until_acked := settings.until_acked;
    info.when_full := settings.when_full;
    info.dedup_window := settings.dedup_window;
    info.process_unmodified := settings.process_unmodified;
    -- </stream settings>

    select h.segment_count, h.message_count, h.bytes
    into info.segment_count, info.message_estimate, info.bytes
    from postbus_data.count_held(found_id) as h;
    select count(*), min(m.deliver_at)
    into info.scheduled, info.next_scheduled_at
    from (
        select m.deliver_at
        from postbus_data.scheduled as m
        where m.stream_id = found_id
            and m.schedule_id is null
        order by m.deliver_at
        limit 10000
    ) as m;
    return info;
end
$$;

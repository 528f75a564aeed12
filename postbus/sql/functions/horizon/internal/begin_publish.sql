create or replace function postbus_data.begin_publish(
    stream text,
    expected_type text,
    caller postbus.caller default postbus.current_caller()
)
returns postbus_data.publish_target
language plpgsql
as $$
/*
Make this transaction a publisher of the stream: take the horizon lock, then say where to write.

Raises   PB403 without the right to publish, PB404 for an unknown stream, PB409 when its data type is not the expected one (null
         accepts any), PB507 when it is full.
Touches  stream (read), the layout register (read).
Locks    as lock_horizon.

The layout is read after the lock, and live. So a segment is known to be complete once no lock as old as its roll is left. Hot:
no PERFORM (an expression in IF is evaluated without a plan), and no search_path of its own: the public functions that call it
set theirs.
*/
declare
    entry postbus_data.publish_target;
    is_full boolean;
begin
    select s.id, s.data_type, s.max_message_bytes, s.one_message_per_key, s.channel_tokens, s.is_full
    into entry.stream_id, entry.data_type, entry.max_message_bytes, entry.one_message_per_key, entry.channel_tokens, is_full
    from postbus_data.stream as s
    where s.name = begin_publish.stream;

    entry.sequence := to_regclass('postbus_data.seq_' || entry.stream_id::text);
    if not postbus_data.has_right(caller, entry.stream_id, 'publish') then
        perform postbus_data.raise_not_permitted(caller, stream, 'publish');
    end if;
    if entry.sequence is null or expected_type <> entry.data_type or is_full then
        perform postbus_data.raise_cannot_publish(stream, entry.data_type, expected_type);
    end if;
    if postbus_data.lock_horizon(entry.stream_id, entry.sequence) then
        entry.layout := pg_sequence_last_value(to_regclass('postbus_data.layout_' || entry.stream_id::text));
    end if;
    if entry.layout is null then
        perform postbus_data.sequence_value('postbus_data.layout_' || entry.stream_id::text);
    end if;
    return entry;
end
$$;

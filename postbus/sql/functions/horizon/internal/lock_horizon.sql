create or replace function postbus_data.lock_horizon(stream_id integer, sequence regclass)
returns boolean
language plpgsql
as $$
/*
Keep the readers of a stream below whatever this transaction publishes, until it ends.

Returns  true.
Raises   PB404 when the stream was dropped, PB503 when another application holds an exclusive lock on the same key.
Locks    once per transaction and stream, a shared advisory lock whose key is the sequence's last_value. It is taken before the
         first nextval, so that readers stay below every seq drawn under it.

A setting records the lock, so that 10,000 publishes do not take 10,000 locks. A rollback, also to a savepoint, undoes both. Any
session may write anything into the setting, so it is not trusted: the lock that it names is taken again, which costs next to
nothing if it is held, and only if its key does not lie above the sequence.
*/
declare
    transaction_id text := pg_current_xact_id()::text;
    entered text := current_setting('postbus.entered', true);
    last_seq bigint := pg_sequence_last_value(sequence);
    held_seq bigint;
begin
    if last_seq is null then
        raise exception using errcode = 'PB404', message = 'the stream was dropped';
    end if;
    if entered is null or not starts_with(entered, transaction_id || ':') then
        entered := transaction_id || ':';
    end if;
    held_seq := nullif(split_part(split_part(entered, ':' || stream_id::text || '=', 2), ':', 1), '')::bigint;
    -- Beyond 2^32 numbers a key says something else; see publisher_locks.
    if (held_seq between last_seq - 4000000000 and last_seq) is not true then
        held_seq := last_seq;
        entered := set_config('postbus.entered', entered || ':' || stream_id::text || '=' || held_seq::text || ':', true);
    end if;
    if not pg_try_advisory_xact_lock_shared(postbus_data.publisher_lock_class(stream_id), postbus_data.publisher_lock_key(held_seq)) then
        raise exception using
            errcode = 'PB503',
            message = 'another application holds an advisory lock that stream ' || stream_id::text || ' needs';
    end if;
    return true;
end
$$;

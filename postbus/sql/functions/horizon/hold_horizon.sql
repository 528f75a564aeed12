create or replace function postbus_data.hold_horizon(stream_id integer, sequence regclass)
returns boolean
language plpgsql
as $$
/*
Keep readers of a stream below what this transaction is going to publish, until it ends.

Returns  true.
Raises   PB503 when another application holds an exclusive lock on the same key.
Locks    once per transaction and stream, a shared advisory lock whose key is the sequence's last_value. It comes before the first
         nextval, so that readers stay below every number drawn under it. The setting that remembers it rolls back together
         with the lock, also to a savepoint; it names the transaction, so that a value that outlived its transaction means nothing.
*/
declare
    transaction_id text := pg_current_xact_id()::text;
    entered text := current_setting('postbus.entered', true);
    last_seq bigint;
begin
    if entered is null or not starts_with(entered, transaction_id || ':') then
        entered := transaction_id || ':';
    end if;
    if strpos(entered, ':' || stream_id::text || ':') = 0 then
        last_seq := pg_sequence_last_value(sequence);
        if last_seq is null then
            -- Postgres 18 says null to a role that may not read the sequence; without the lock, readers would skip its messages.
            raise exception using errcode = 'PB403', message = 'permission denied for sequence ' || sequence::text;
        end if;
        if not pg_try_advisory_xact_lock_shared(
            postbus_data.lock_class(stream_id),
            postbus_data.lock_key(last_seq)
        ) then
            raise exception using
                errcode = 'PB503',
                message = 'another application holds an advisory lock that stream ' || stream_id::text || ' needs';
        end if;
        entered := set_config('postbus.entered', entered || stream_id::text || ':', true);
    end if;
    return true;
end
$$;

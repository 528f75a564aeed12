create or replace function postbus_data.horizon_of(stream_id integer)
returns bigint
language plpgsql
volatile
as $$
/*
The seq up to which every message is committed or will never exist.

A reader takes it in a statement of its own and reads rows in a later one, with a younger snapshot; in one statement, or
under a snapshot that is kept, a message that commits in between is skipped for ever. Hence the isolation check.

Raises   PB412 outside READ COMMITTED, PB503 on a standby (its sequences run ahead and it sees no locks).
*/
declare
    last_seq bigint;
    oldest bigint;
begin
    if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
        raise exception using
            errcode = 'PB412',
            message = format('a stream cannot be read in a %s transaction', upper(current_setting('transaction_isolation'))),
            hint = 'its snapshot may be older than messages that have been numbered before it: use READ COMMITTED';
    end if;
    if pg_is_in_recovery() then
        raise exception using
            errcode = 'PB503',
            message = 'this server is a standby: it cannot tell which messages are complete',
            hint = 'connect to the primary';
    end if;

    last_seq := pg_sequence_last_value(to_regclass('postbus_data.seq_' || stream_id));
    select min(l.held_at) into oldest from postbus_data.publisher_locks(stream_id, last_seq) as l;
    return least(last_seq, oldest);
end
$$;

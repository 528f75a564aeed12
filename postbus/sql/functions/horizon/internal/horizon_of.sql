create or replace function postbus_data.horizon_of(stream_id integer)
returns bigint
language plpgsql
volatile
as $$
/*
The seq up to which every message is committed or will never exist.

A reader calls it in a statement of its own and reads rows in a later one, with a younger snapshot. In one statement, or under a
snapshot that is kept, a message that commits in between would never be read. Hence the isolation check.

Raises   PB412 outside READ COMMITTED, PB503 on a standby (its sequences run ahead and it sees no locks).
*/
declare
    last_seq bigint;
    oldest bigint;
begin
    perform postbus_data.check_isolation();
    if pg_is_in_recovery() then
        raise exception using
            errcode = 'PB503',
            message = 'this server is a standby: it cannot tell which messages are complete',
            hint = 'connect to the primary';
    end if;

    last_seq := postbus_data.sequence_value('postbus_data.seq_' || stream_id::text);
    select min(l.held_at) into oldest from postbus_data.publisher_locks(stream_id, last_seq) as l;
    return least(last_seq, oldest);
end
$$;

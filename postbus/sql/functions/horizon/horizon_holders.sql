create or replace function postbus.horizon_holders(stream text)
returns table (
    held_at_seq bigint,
    held_for interval,
    transaction_started_at timestamptz,
    pid integer,
    user_name text,
    application_name text,
    state text,
    query text,
    prepared_transaction text
)
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
/*
The publishers that hold back the readers of a stream, the one furthest back first.

A holder is a transaction that has published and is still open, or is prepared (then pid is null). Query and application of other
users' sessions are null unless you have pg_read_all_stats.

Raises   PB404 for an unknown stream.
*/
declare
    id integer := postbus_data.stream_id(stream);
    last_seq bigint := pg_sequence_last_value(to_regclass('postbus_data.seq_' || id));
begin
    return query
    select
        l.held_at,
        clock_timestamp() - coalesce(a.xact_start, p.prepared),
        coalesce(a.xact_start, p.prepared),
        l.pid,
        coalesce(a.usename, p.owner)::text,
        a.application_name,
        a.state,
        a.query,
        p.gid
    from postbus_data.publisher_locks(id, last_seq) as l
    left join pg_stat_activity as a on a.pid = l.pid
    -- A prepared transaction has no session; the lock on its own id identifies it.
    left join pg_locks as t
        on t.locktype = 'transactionid'
        and t.virtualtransaction = l.virtual_transaction
        and t.pid is null
        and l.pid is null
    left join pg_prepared_xacts as p on p.transaction = t.transactionid
    order by l.held_at;
end
$$;

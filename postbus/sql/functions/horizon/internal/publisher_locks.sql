create or replace function postbus_data.publisher_locks(stream_id integer, last_seq bigint)
returns table (pid integer, virtual_transaction text, held_at bigint)
language sql
volatile
as $$
/*
The horizon locks that open publishers of a stream hold now, each with the seq at which it holds the horizon.

A key is 32 bits of a seq, so its seq is found by its distance below last_seq modulo 2^32: a stream may pass 2^31, and an open
publisher may fall four billion messages behind. A lock taken since last_seq was read lies a little above it.
*/
    select l.pid, l.virtualtransaction, last_seq - distance.behind
    from pg_catalog.pg_locks as l
    cross join lateral (select (last_seq - l.objid::bigint) & 4294967295 as behind) as distance
    where l.locktype = 'advisory'
        and l.database = (select d.oid from pg_catalog.pg_database as d where d.datname = current_database())
        and l.classid = postbus_data.publisher_lock_class(stream_id)::oid
        and l.objsubid = 2
        and l.mode = 'ShareLock'
        and l.granted
        and distance.behind < 4294967296 - 16777216
$$;

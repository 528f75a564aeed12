create or replace function postbus_data.history_bounds(stream text, caller postbus.caller default postbus.current_caller())
returns table (
    consumer_id integer,
    consumer text,
    first_finished_at timestamptz,
    last_finished_at timestamptz,
    first_seq bigint
)
language sql
stable
set enable_seqscan = off
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
The first and last time in the history of each consumer of a stream, and the lowest seq in it. No row for a consumer without
history.

Raises   PB403 without the right to consume, PB404 for an unknown stream.
*/
    select c.id, c.name, h.first_finished_at, h.last_finished_at, h.first_seq
    from postbus_data.consumer as c
    cross join lateral (
        select
            (select min(h.finished_at) from postbus_data.history as h where h.consumer_id = c.id) as first_finished_at,
            (select max(h.finished_at) from postbus_data.history as h where h.consumer_id = c.id) as last_finished_at,
            (select min(h.first_seq) from postbus_data.history as h where h.consumer_id = c.id) as first_seq
    ) as h
    where c.stream_id = postbus_data.permitted_stream(caller, stream, 'consume')
        and h.first_seq is not null
    order by c.name
$$;

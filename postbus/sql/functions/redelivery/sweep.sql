create or replace function postbus.sweep(stream text default null)
returns integer
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Redeliver what has expired or come due, for the consumers of a stream or of all streams, and publish what was scheduled and is due.

Any number of callers may run it, one at a time does each consumer. receive does the same for its consumer, so this is only needed
for wake-ups and for dead letters of consumers that nobody receives from.

Returns  how many messages became available.
Raises   PB404 for a named stream that does not exist.
*/
declare
    reader postbus_data.consumer;
    only_id integer := case when stream is not null then postbus_data.stream_id(stream) end;
    -- In a query it would not be looked up in an index.
    now_at timestamptz := clock_timestamp();
    due_id integer;
    made integer := 0;
begin
    for reader in
        select c.* from postbus_data.consumer as c where (only_id is null or c.stream_id = only_id) and not c.is_group order by c.id
    loop
        made := made + postbus_data.sweep_consumer(reader);
    end loop;
    for due_id in
        select s.id
        from postbus_data.stream as s
        where (only_id is null or s.id = only_id)
            and exists (select from postbus_data.scheduled as d where d.stream_id = s.id and d.deliver_at <= now_at)
    loop
        made := made + postbus_data.append_scheduled(due_id);
    end loop;
    return made;
end
$$;

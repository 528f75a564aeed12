create or replace function postbus_data.expire_consumers(stream_id integer)
returns integer
language plpgsql
volatile
as $$
/*
Remove the consumers of a stream that nobody has used for their expire_after, and history older than keep_history.

A receive that found nothing has recorded its use; one by the fast path has moved a position, which is recorded here.

Returns  how many consumers were removed.
Touches  consumer and all its rows (delete), history (delete), consumer_use (insert, delete).
*/
declare
    now_at timestamptz := clock_timestamp();
    reader postbus_data.consumer;
    last_use postbus_data.consumer_use;
    positions bigint;
    removed integer := 0;
begin
    for reader in
        select c.*
        from postbus_data.consumer as c
        where c.stream_id = expire_consumers.stream_id
            and num_nonnulls(c.expire_after, c.keep_history) > 0
    loop
        delete from postbus_data.history as h
        where h.consumer_id = reader.id
            and h.finished_at < now_at - reader.keep_history;
        continue when reader.expire_after is null;

        last_use := postbus_data.last_use_of(reader);
        positions := postbus_data.position_sum(reader);
        if last_use.used_at is null or positions is distinct from last_use.position_sum then
            perform postbus_data.note_use(reader, positions);
        elsif last_use.used_at < clock_timestamp() - reader.expire_after then
            perform postbus.drop_consumer(reader.stream_name, reader.name);
            removed := removed + 1;
        end if;
    end loop;
    return removed;
end
$$;

create or replace function postbus.terminate(
    stream text,
    consumer text,
    ack_ids text[],
    reason text default null,
    caller postbus.caller default postbus.current_caller()
)
returns integer
language plpgsql
volatile
security definer
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
set search_path = pg_catalog, pg_temp
as $$
/*
Make deliveries dead letters at once, whatever max_deliver says.

Returns  how many this call buried; see ack for what is counted, also of leases that have expired.
Raises   PB400 for what is not an ack id, PB403 without the right to consume, PB404 for an unknown stream or consumer, PB412 outside READ COMMITTED.
Touches  settled, dead_letter (insert), lease (delete); history (insert) when the consumer keeps one.
Locks    the leases, in order of their tokens.
*/
declare
    reader postbus_data.consumer := postbus_data.permitted_consumer(caller, stream, consumer);
    named record;
    message record;
    buried integer := 0;
begin
    perform postbus_data.check_isolation();
    for named in select p.token, p.seqs from postbus_data.parse_ack_ids(ack_ids) as p loop
        for message in select s.* from postbus_data.settle_messages(
            reader.id, reader.epoch, named.token, named.seqs, 'dead', coalesce(reason, 'terminated')
        ) as s loop
            perform postbus_data.add_dead_letter(
                reader, message.partition, message.seq, message.attempt, coalesce(reason, 'terminated')
            );
            buried := buried + 1;
        end loop;
        if reader.ordering = 'key' and reader.on_dead = 'hold' and named.seqs is not null then
            perform postbus_data.return_later_messages_of_key(reader, named.token, named.seqs);
        end if;
    end loop;
    return buried;
end
$$;

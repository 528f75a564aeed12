create or replace function postbus.nack(
    stream text,
    consumer text,
    ack_ids text[],
    delay interval default null,
    reason text default null,
    untried boolean default false,
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
Give deliveries back: they have failed and are delivered again, or become dead letters after max_deliver.

In order "key", later messages of the same key in the same lease are taken back with them, and come again behind them.

delay    how long each waits first; null takes the consumer's backoff.
reason   why; kept with the message.
untried  nobody has worked on them: this delivery does not count, and without a delay they come again at once.

Returns  how many were given back by this call, as ack counts.
Raises   PB400 for a delay that is not between 0 and 30 days, PB404, PB412 outside READ COMMITTED.
Touches  settled, waiting, dead_letter (insert), lease (delete).
*/
declare
    reader postbus_data.consumer := postbus_data.permitted_consumer(caller, stream, consumer);
    named record;
    message record;
    failed integer := 0;
begin
    perform postbus_data.check_isolation();
    if (delay between interval '0' and interval '30 days') is false then
        raise exception using errcode = 'PB400', message = format('delay = %s is not between 0 and 30 days', delay);
    end if;
    for named in select p.token, p.seqs from postbus_data.parse_ack_ids(ack_ids) as p loop
        for message in select s.* from postbus_data.settle_messages(
            reader.id, reader.epoch, named.token, named.seqs,
            case when not untried then 'failed' end, coalesce(reason, 'nacked')
        ) as s loop
            perform postbus_data.schedule_retry(
                reader, message.partition, message.seq, message.key,
                case when untried then message.attempt - 1 else message.attempt end,
                case when untried then coalesce(delay, interval '0') else delay end,
                coalesce(reason, 'nacked')
            );
            failed := failed + 1;
        end loop;
        if reader.ordering = 'key' and named.seqs is not null then
            perform postbus_data.return_later_messages_of_key(reader, named.token, named.seqs);
        end if;
    end loop;
    return failed;
end
$$;

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
Nack deliveries: they have failed, and their messages are redelivered or, after max_deliver, become dead letters.

In order "key", later messages of the same key in the same lease are returned with them and are redelivered after them.

delay    how long each message waits first; null means the consumer's backoff.
reason   why; kept with the message.
untried  nobody has worked on the messages: the delivery does not count as an attempt, and without a delay they are available at
         once.

Returns  how many this call returned. A delivery that was settled before is not counted, nor one whose lease has expired and was swept: its
         message waits for redelivery already.
Raises   PB400 for what is not an ack id or a delay not between 0 and 30 days, PB403 without the right to consume, PB404 for an unknown stream or consumer,
         PB412 outside READ COMMITTED.
Touches  settled, waiting, dead_letter (insert), lease (delete); history (insert) when the consumer keeps one.
Locks    the leases, in order of their tokens.
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

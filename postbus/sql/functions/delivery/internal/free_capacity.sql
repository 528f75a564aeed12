create or replace function postbus_data.free_capacity(reader postbus_data.consumer, wanted integer)
returns integer
language plpgsql
volatile
as $$
/*
How many of the wanted messages a small max_ack_pending leaves room for.

Locks    the consumer's count mutex until the transaction ends: otherwise two receives could both count the same room. Waits for
         another receive for up to 100 ms; returns 0 if that does not end by then.
*/
declare
    wait_until timestamptz := clock_timestamp() + interval '100 milliseconds';
begin
    while not pg_try_advisory_xact_lock(postbus_data.consumer_lock_class(reader.id), postbus_data.consumer_lock('count')) loop
        if clock_timestamp() > wait_until then
            return 0;
        end if;
        perform pg_sleep(0.002);
    end loop;
    return least(wanted, reader.max_ack_pending - postbus_data.in_flight(reader.id, reader.epoch, null, null));
end
$$;

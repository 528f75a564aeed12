create or replace function postbus_data.mark_levels(stream_id integer, wait_until timestamptz)
returns boolean
language plpgsql
volatile
as $$
/*
Say in the layout register that the stream has levels: at once, for every snapshot, and whether this transaction commits or not. Receives that were
written for a stream without levels leave the short way then.

Maintenance also writes the register, under its mutex. That is held here for a moment only: the end of the inner block gives it back, by a rollback that
does not undo the register.

Returns  false when maintenance held its mutex until wait_until: the next publisher, or maintenance, will mark it.
Touches  the layout register.
*/
declare
    register regclass := to_regclass('postbus_data.layout_' || stream_id::text);
    layout bigint;
begin
    loop
        begin
            if pg_try_advisory_xact_lock(postbus_data.consumer_lock_class(0), stream_id) then
                layout := pg_sequence_last_value(register);
                if not postbus_data.has_levels(layout) then
                    perform setval(
                        register, postbus_data.pack_layout(postbus_data.layout_segment(layout), postbus_data.layout_base(layout), postbus_data.layout_count(layout), true)
                    );
                end if;
                raise transaction_rollback using message = 'give the mutex back';
            end if;
        exception when transaction_rollback then
            return true;
        end;
        if clock_timestamp() >= wait_until then
            return false;
        end if;
        perform pg_sleep(0.001);
    end loop;
end
$$;

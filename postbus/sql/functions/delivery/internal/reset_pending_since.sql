create or replace function postbus_data.reset_pending_since(reader postbus_data.consumer)
returns void
language plpgsql
volatile
as $$
/*
Make the next count of messages in flight look at all leases, because some will end earlier than positions say.

Touches  position (update).
Locks    the mutex of each partition, in order, until the transaction ends. Receives only try for them, so no cycle of waits can
         form.
*/
begin
    for place in reader.partition_base .. reader.partition_base + reader.partition_count - 1 loop
        perform pg_advisory_xact_lock(postbus_data.consumer_lock_class(reader.id), place);
        update postbus_data.position as p
        set pending_since = null
        where p.consumer_id = reader.id
            and p.epoch = reader.epoch
            and p.partition = place
            and p.pending_since is not null;
    end loop;
end
$$;

create or replace function postbus_data.note_maintenance()
returns void
language sql
volatile
as $$
/*
Note that all streams have been maintained, unless another session is noting it.

Touches  upkeep (update).
Locks    the row of upkeep, until the transaction ends; it does not wait for it.
*/
    update postbus_data.upkeep as u
    set maintained_at = clock_timestamp()
    where u.singleton in (select o.singleton from postbus_data.upkeep as o for update skip locked)
$$;

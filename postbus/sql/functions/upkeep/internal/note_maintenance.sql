create or replace function postbus_data.note_maintenance()
returns void
language sql
volatile
as $$
/*
Note that all streams have been maintained, unless another session is noting it. While a process of the library holds the upkeep,
that says nearly as much, so once a minute is enough: an idle database has little to write.

Touches  upkeep (update).
Locks    the row of upkeep, until the transaction ends; it does not wait for it.
*/
    update postbus_data.upkeep as u
    set maintained_at = clock_timestamp()
    where u.singleton in (
        select o.singleton
        from postbus_data.upkeep as o
        where (
            o.held_at > clock_timestamp() - interval '10 seconds'
            and o.maintained_at > clock_timestamp() - interval '1 minute'
        ) is not true
        for update skip locked
    )
$$;

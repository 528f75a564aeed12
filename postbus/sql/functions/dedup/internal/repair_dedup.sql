create or replace function postbus_data.repair_dedup(stream_id integer)
returns integer
language plpgsql
volatile
as $$
/*
Point the register at the newest table of ids when it names one that does not exist. A dump may hold a register that moved on
while the tables were dumped; before step 4, a crash or a failover could leave it ahead. Maintenance may also have dropped all
tables as too old because of such a register; then a new one is prepared, and a later call names it.

Its caller holds the stream's maintenance mutex.
Returns  how many steps were taken.
*/
declare
    named integer := pg_sequence_last_value(to_regclass('postbus_data.dedup_' || stream_id));
    newest postbus_data.dedup;
begin
    if named is null then
        return 0;
    end if;
    select d.* into newest
    from postbus_data.dedup as d
    where d.stream_id = repair_dedup.stream_id
    order by d.number desc
    limit 1;
    if newest.number is null then
        perform postbus_data.prepare_dedup(stream_id, 1);
        return 1;
    end if;
    if named <= newest.number or newest.prepared_by = pg_current_xact_id() then
        return 0;
    end if;
    -- Nothing could be written to it while the register was ahead, so it may look finished.
    update postbus_data.dedup as d
    set rolled_at_seq = null,
        sealed_at = null
    where d.stream_id = newest.stream_id
        and d.number = newest.number;
    perform postbus_data.set_dedup(stream_id, newest.number);
    return 1;
end
$$;

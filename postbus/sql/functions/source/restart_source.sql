create or replace function postbus.restart_source(name text, backfill boolean default true, empty_first boolean default false)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Begin a source anew: with a new slot, from now on. For a source whose slot is gone or no longer fits (gap, diverged, slot_lost). What changed in
between is not published, but with backfill every row that is there now. Rows that were deleted in between are not reported.

empty_first  publish a truncate of each table before its rows, so that copies lose what was deleted in between. It needs backfill.

Raises   PB400 for empty_first without backfill, PB404 for an unknown source.
Touches  source (update), source_table (delete or update).
*/
declare
    restarted integer := postbus_data.find_source(name);
begin
    if empty_first and not restart_source.backfill then
        raise exception using errcode = 'PB400', message = 'empty_first needs backfill: copies would stay empty';
    end if;
    update postbus_data.source as s set empties = empty_first, epoch = 0, version = s.version + 1, paused = false where s.id = restarted;
    if restart_source.backfill then
        delete from postbus_data.source_table as t where t.source_id = restarted;
        update postbus_data.source as s set backfill = true where s.id = restarted;
    else
        update postbus_data.source_table as t
        set backfill = 'none'
        where t.source_id = restarted
            and t.backfill in ('pending', 'running', 'paused');
    end if;
end
$$;

create or replace function postbus_data.source_position_of(source_id integer, epoch integer)
returns pg_lsn
language sql
stable
set enable_seqscan = off
set enable_bitmapscan = off
set search_path = pg_catalog, pg_temp
as $$
/* How far a source is published; null before its slot exists. It looks at the right edge, so rows that were deleted cost nothing. */
    select p.lsn
    from postbus_data.source_position as p
    where p.source_id = source_position_of.source_id
        and p.epoch = source_position_of.epoch
    order by p.lsn desc
    limit 1
$$;

create or replace function postbus_data.begin_range(snapshot_id bigint, writer text, number integer)
returns table (after_key text[], to_key text[], is_of_nulls boolean)
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
/*
Take a range of a backfill, to publish it in this transaction.

Returns  no row when the range is published already, or may not be read at this snapshot any more: the snapshot is closed, or
         another run has begun.
Locks    the range, so that only one of two attempts publishes it.
*/
#variable_conflict use_column
begin
    return query
    select r.after_key, r.to_key, r.is_of_nulls
    from postbus_data.backfill_range as r
    where r.writer = begin_range.writer
        and r.number = begin_range.number
        and r.done_at is null
        and exists (
            select
            from postbus_data.backfill_snapshot as s
            join postbus_data.pipeline as p on p.name = s.pipeline and p.run = s.run
            where s.id = begin_range.snapshot_id
                and s.closed_at is null
        )
    for update of r;
end
$$;

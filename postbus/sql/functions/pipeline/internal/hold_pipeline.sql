create or replace function postbus_data.hold_pipeline(name text, run uuid)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
/*
Keep other runs from replacing this one until the transaction ends.

Raises   PB409 when another run has replaced it already.
Locks    the pipeline's row.
*/
begin
    perform from postbus_data.pipeline as p where p.name = hold_pipeline.name and p.run = hold_pipeline.run for update;
    if not found then
        raise exception using
            errcode = 'PB409',
            message = format('another run of pipeline "%s" has begun', name),
            hint = 'this run stops; nothing was lost or duplicated';
    end if;
end
$$;

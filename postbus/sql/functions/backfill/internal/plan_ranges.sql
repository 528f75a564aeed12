create or replace function postbus_data.plan_ranges(pipeline text, run uuid, writer text, ranges jsonb)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
/*
Record the ranges of a backfill, unless they are recorded already.

ranges   [{"after_key": ["1"], "to_key": ["2"], "is_of_nulls": false}], in order.

Raises   PB409 when another run has replaced this one.
Locks    the pipeline's row.
*/
begin
    perform postbus_data.hold_pipeline(plan_ranges.pipeline, plan_ranges.run);
    if exists (select from postbus_data.backfill_range as r where r.writer = plan_ranges.writer) then
        return;
    end if;
    insert into postbus_data.backfill_range (pipeline, writer, number, after_key, to_key, is_of_nulls)
    select
        plan_ranges.pipeline,
        plan_ranges.writer,
        n.place - 1,
        postbus_data.text_array(n.range -> 'after_key'),
        postbus_data.text_array(n.range -> 'to_key'),
        (n.range ->> 'is_of_nulls')::boolean
    from jsonb_array_elements(ranges) with ordinality as n (range, place);
end
$$;

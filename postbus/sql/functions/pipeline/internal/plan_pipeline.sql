create or replace function postbus_data.plan_pipeline(name text, run uuid, plan jsonb, anew boolean)
returns jsonb
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
/*
The plan of a pipeline that has an end, as decided when it first began, so that a run that continues does the same. With anew,
and when there is no plan yet, the given plan is stored.

Returns  the plan in force; null when another run has replaced this one.
*/
declare
    known jsonb;
begin
    select coalesce(p.plan, plan_pipeline.plan)
    into known
    from postbus_data.pipeline as p
    where p.name = plan_pipeline.name
        and p.run = plan_pipeline.run
    for update;
    if anew and known is not null then
        known := plan_pipeline.plan;
    end if;
    update postbus_data.pipeline as p
    set plan = known,
        position_seq = case when known = p.plan then p.position_seq end
    where p.name = plan_pipeline.name
        and p.run = plan_pipeline.run;
    return known;
end
$$;

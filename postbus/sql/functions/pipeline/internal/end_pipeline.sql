create or replace function postbus_data.end_pipeline(name text, run uuid, state text, last_error text)
returns void
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
/* Record that a run has ended: done, stopped, or failed with this error. Does nothing for a run that was replaced. */
    update postbus_data.pipeline as p
    set state = end_pipeline.state,
        last_error = end_pipeline.last_error,
        noted_at = clock_timestamp(),
        ended_at = clock_timestamp()
    where p.name = end_pipeline.name
        and p.run = end_pipeline.run
$$;

create or replace function postbus_data.end_pipeline(name text, run uuid, state text, last_error text)
returns void
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
/* Note that a run has ended: done, stopped, or failed with this error. An older run than the pipeline's changes nothing. */
    update postbus_data.pipeline as p
    set state = end_pipeline.state,
        last_error = end_pipeline.last_error,
        noted_at = clock_timestamp(),
        ended_at = clock_timestamp()
    where p.name = end_pipeline.name
        and p.run = end_pipeline.run
$$;

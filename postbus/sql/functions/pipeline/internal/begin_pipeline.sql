create or replace function postbus_data.begin_pipeline(name text, kind text, stream text, consumer text, options jsonb)
returns uuid
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
/*
Note that a run of a pipeline begins. It takes the place of an earlier one, whether that still lives or not.

Returns  the run, which note_pipeline and end_pipeline ask for.
Raises   PB404.
*/
    insert into postbus_data.pipeline as p (name, kind, stream_id, consumer, options, state, run)
    values (name, kind, postbus_data.stream_id(stream), consumer, options, 'running', gen_random_uuid())
    on conflict on constraint pipeline_pkey do update
    set kind = excluded.kind,
        stream_id = excluded.stream_id,
        consumer = excluded.consumer,
        options = excluded.options,
        state = 'running',
        run = excluded.run,
        run_count = 0,
        total_estimate = null,
        last_error = null,
        started_at = clock_timestamp(),
        noted_at = clock_timestamp(),
        ended_at = null
    returning p.run
$$;

create or replace function postbus_data.begin_pipeline(name text, kind text, stream text, consumer text, options jsonb)
returns uuid
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
/*
Record that a run of a pipeline begins. It replaces an earlier run, even one that is still alive.

Returns  the run's id, which note_pipeline and end_pipeline take.
Raises   PB404 for an unknown stream.
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

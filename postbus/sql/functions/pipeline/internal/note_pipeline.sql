create or replace function postbus_data.note_pipeline(
    name text,
    run uuid,
    done_count bigint,
    total_estimate bigint,
    position_seq bigint,
    aside_count bigint,
    late_count bigint
)
returns boolean
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
/*
Record the progress of a pipeline's run: done_count more messages, of about total_estimate, aside_count more rows that are in
another stream, and late_count more that a watermark dropped.

Returns  whether it is still the pipeline's run; null when another run has replaced it, or the pipeline is gone.
*/
    update postbus_data.pipeline as p
    set run_count = p.run_count + done_count,
        message_count = p.message_count + done_count,
        total_estimate = note_pipeline.total_estimate,
        aside_count = p.aside_count + note_pipeline.aside_count,
        late_count = p.late_count + note_pipeline.late_count,
        position_seq = coalesce(note_pipeline.position_seq, p.position_seq),
        noted_at = clock_timestamp()
    where p.name = note_pipeline.name
        and p.run = note_pipeline.run
    returning true
$$;

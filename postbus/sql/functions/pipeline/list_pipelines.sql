create or replace function postbus.list_pipelines()
returns setof postbus.pipeline_info
language sql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
The pipelines, in order of their names.

state           running, done, stopped (by a signal; it continues when it is run again), failed (see last_error), or lost (it was
                running, and has reported nothing for a minute).
message_count   how many messages it has processed in all its runs; run_count in the last run, of about total_estimate.
rate            messages per second of the last run.
lag_estimate    how many messages a pipeline that follows its stream has left; null for a pipeline that has an end.
noted_at        when it last reported its progress.
aside_count     what it could not publish in all its runs, and has put into another stream; late_count what a watermark dropped.
*/
    select
        p.name,
        p.kind,
        s.name,
        case when p.state = 'running' and p.noted_at < clock_timestamp() - interval '1 minute' then 'lost' else p.state end,
        p.message_count,
        p.run_count,
        p.total_estimate,
        round(p.run_count / greatest(0.001, extract(epoch from coalesce(p.ended_at, p.noted_at) - p.started_at)), 1)::double precision,
        (
            select t.lag_estimate
            from postbus_data.consumer as c
            cross join lateral postbus.stats(s.name, c.name) as t
            where c.stream_name = s.name
                and c.name = p.consumer
                and t.partition is null
        ),
        p.position_seq,
        p.last_error,
        p.started_at,
        p.noted_at,
        p.ended_at,
        p.aside_count,
        p.late_count
    from postbus_data.pipeline as p
    join postbus_data.stream as s on s.id = p.stream_id
    order by p.name
$$;

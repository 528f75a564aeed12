create or replace function postbus.list_pipelines()
returns setof postbus.pipeline_info
language sql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
The pipelines, by name.

state           running, done, stopped (by a signal, and will go on), failed (see last_error), or lost: it was running, and has said nothing for a minute.
message_count   how many messages it has done in all its runs; run_count in the last one, of about total_estimate.
rate            messages per second of the last run.
lag_estimate    how many messages are left for a pipeline that follows its stream; null for one that has an end.
noted_at        when it last said how far it is.
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
        p.ended_at
    from postbus_data.pipeline as p
    join postbus_data.stream as s on s.id = p.stream_id
    order by p.name
$$;

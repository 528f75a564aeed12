create or replace function postbus.list_webhook_sources(name text default null)
returns setof postbus.webhook_source_info
language sql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/* The webhook sources, or only that with a name, in order of their names, with the last requests that they refused. Secrets are not shown. */
    select
        s.name, t.name, s.kind, cardinality(s.secrets), s.options - array['verify_token', 'client_state'], s.key_template, s.id_from, s.keep_headers,
        s.dedup, s.max_body_bytes, s.max_rate, s.paused, s.created_at,
        coalesce(
            (
                select jsonb_agg(
                    jsonb_build_object(
                        'refused_at', r.refused_at, 'status', r.status, 'reason', r.reason, 'refused_count', r.refused_count
                    )
                    order by r.n desc
                )
                from (
                    select f.* from postbus_data.webhook_refusal as f where f.source_id = s.id order by f.n desc limit 10
                ) as r
            ),
            '[]'
        )
    from postbus_data.webhook_source as s
    join postbus_data.stream as t on t.id = s.stream_id
    where list_webhook_sources.name is null or s.name = list_webhook_sources.name
    order by s.name
$$;

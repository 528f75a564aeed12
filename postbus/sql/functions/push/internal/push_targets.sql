create or replace function postbus_data.push_targets()
returns table (
    consumer_id integer, stream text, consumer text, version integer, is_active boolean, is_resting boolean, rest_seconds double precision,
    has_test boolean
)
language sql
volatile
as $$
/* What whoever sends has to know about all endpoints, once a second: the rest is asked for when the version has changed. */
    select
        p.consumer_id, c.stream_name, c.name, p.version, p.paused_reason is null and not c.paused,
        s.rests_until is not null,
        coalesce(greatest(extract(epoch from greatest(s.rests_until, s.probe_until) - clock_timestamp()), 0), 0)::double precision,
        exists (select from postbus_data.push_test as t where t.consumer_id = p.consumer_id)
    from postbus_data.push as p
    join postbus_data.consumer as c on c.id = p.consumer_id
    left join lateral postbus_data.push_state_of(p.consumer_id) as s on true
$$;

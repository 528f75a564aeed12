create or replace function postbus.fetch(
    stream text,
    partition integer,
    from_seq bigint,
    to_seq bigint,
    expected_type text default null,
    caller postbus.caller default postbus.current_caller()
)
returns setof postbus.message
language plpgsql
volatile
security definer
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
set search_path = pg_catalog, pg_temp
as $$
/*
The messages of a claimed range, in order. Messages removed from the stream since then are left out.

Raises   PB403 without the right to consume or read, PB404 for an unknown stream, PB409 for another data type.
*/
#variable_conflict use_variable
declare
    source postbus_data.stream;
begin
    select s.* into source from postbus_data.stream as s where s.id = postbus_data.permitted_stream(caller, stream, 'consume', 'read');
    if expected_type <> source.data_type then
        raise exception using errcode = 'PB409', message = format('stream "%s" holds %s, not %s', stream, source.data_type, expected_type);
    end if;
    return query
    select m.seq, m.partition, m.key, m.data, m.bytes, m.headers, m.published_at, null::text, postbus.priority_of(m.partition)
    from unnest(
        postbus_data.fetch_messages(source.id, partition, greatest(from_seq, source.start_seq) - 1, to_seq, 10000)
    ) as m
    order by m.seq;
end
$$;

create or replace function postbus.dead_letters(
    stream text,
    consumer text,
    seqs bigint[] default null,
    key_pattern text default null,
    reason_like text default null,
    after_seq bigint default 0,
    max_messages integer default 100,
    caller postbus.caller default postbus.current_caller()
)
returns setof postbus.dead_letter
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
A page of a consumer's dead letters, in order of seq, above after_seq.

seqs, key_pattern, reason_like   only these; reason_like is a LIKE pattern, such as 'timeout%'. Null matches all.

Raises   PB400 for an argument out of range or an invalid pattern, PB403 without the right to consume, PB404 for an unknown
         stream or consumer.
*/
declare
    reader postbus_data.consumer := postbus_data.permitted_consumer(caller, stream, consumer);
begin
    return query
    select d.seq, d.partition, d.key, d.data, d.bytes, d.headers, d.published_at, d.attempts, d.reason, d.died_at,
        coalesce(s.deferrals, 0), s.state::text, s.bytes, postbus.priority_of(d.partition)
    from postbus_data.match_dead(reader.id, seqs, key_pattern, reason_like, after_seq, max_messages) as d
    left join postbus_data.saved as s on s.consumer_id = reader.id and s.seq = d.seq
    order by d.seq;
end
$$;

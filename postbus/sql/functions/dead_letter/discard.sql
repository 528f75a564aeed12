create or replace function postbus.discard(
    stream text,
    consumer text,
    seqs bigint[] default null,
    key_pattern text default null,
    reason_like text default null,
    max_messages integer default 10000,
    caller postbus.caller default postbus.current_caller()
)
returns integer
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Remove at most max_messages dead letters. See dead_letters for how to choose them.

Returns  how many were removed.
Raises   PB400 for an argument out of range or an invalid pattern, PB403 without the right to consume, PB404 for an unknown
         stream or consumer.
Touches  dead_letter, saved (delete).
*/
declare
    reader postbus_data.consumer := postbus_data.permitted_consumer(caller, stream, consumer);
    discarded integer;
begin
    with gone as (
        delete from postbus_data.dead_letter as d
        using postbus_data.match_dead(reader.id, seqs, key_pattern, reason_like, 0, max_messages) as m
        where d.consumer_id = reader.id
            and d.seq = m.seq
        returning d.seq
    ),
    forgotten as (
        delete from postbus_data.saved as s
        where s.consumer_id = reader.id
            and s.seq in (select g.seq from gone as g)
    )
    select count(*) into discarded from gone as g;
    return discarded;
end
$$;

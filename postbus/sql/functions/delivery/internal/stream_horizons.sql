create or replace function postbus_data.stream_horizons(
    stream_ids bigint[],
    seen bigint[],
    caller postbus.caller default postbus.current_caller()
)
returns setof bigint
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
The horizons of several streams, in their order, for receivers that wait. Reads one sequence for each stream, and looks for open
publishers only where seqs were drawn since.

seen     up to which seq the receivers of each stream have been told.
Returns  a seq for each stream, at least the one seen; null for a stream that was dropped, or that the caller may not consume.
*/
declare
    last_seq bigint;
begin
    for place in 1 .. coalesce(cardinality(stream_ids), 0) loop
        last_seq := case
            when postbus_data.has_right(caller, stream_ids[place]::integer, 'consume')
            then pg_sequence_last_value(to_regclass('postbus_data.seq_' || stream_ids[place]))
        end;
        if last_seq > seen[place] then
            last_seq := greatest(seen[place], postbus_data.horizon_of(stream_ids[place]::integer));
        end if;
        return next last_seq;
    end loop;
end
$$;

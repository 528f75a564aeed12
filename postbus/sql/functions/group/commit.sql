create or replace function postbus.commit(
    stream text,
    "group" text,
    tokens text[],
    to_seq bigint default null,
    caller postbus.caller default postbus.current_caller()
)
returns integer
language plpgsql
volatile
security definer
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
set search_path = pg_catalog, pg_temp
as $$
/*
Finish ranges that were claimed with a lease, in the caller's transaction: each of them as a whole, or only up to a seq.

Returns  how many ranges counted. A range whose lease expired and was claimed again is not counted: a late commit moves nothing
         back.
Raises   PB400 for what is not a token, PB403 without the right to consume, PB404 for an unknown stream or group, PB409 for a consumer
         that is not a group, PB412 outside READ COMMITTED.
Touches  lease (delete, or update for part of a range).
*/
#variable_conflict use_variable
declare
    reader postbus_data.consumer := postbus_data.permitted_group(caller, stream, "group");
    finished integer := 0;
    changed integer;
    named text;
begin
    perform postbus_data.check_isolation();
    foreach named in array (select coalesce(array_agg(t order by t), '{}') from unnest(tokens) as t) loop
        if to_seq is not null then
            update postbus_data.lease as l
            set seqs = array(select s from unnest(l.seqs) as s where s > to_seq order by s),
                attempts = null
            where l.token = postbus_data.parse_token(named)
                and l.consumer_id + 0 = reader.id
                and l.epoch = reader.epoch
                and l.seqs[cardinality(l.seqs)] > to_seq;
            get diagnostics changed = row_count;
            finished := finished + changed;
            continue when changed > 0;
        end if;
        delete from postbus_data.lease as l
        where l.token = postbus_data.parse_token(named)
            and l.consumer_id + 0 = reader.id
            and l.epoch = reader.epoch;
        get diagnostics changed = row_count;
        finished := finished + changed;
    end loop;
    if finished < cardinality(tokens) then
        -- Perhaps some are no tokens at all.
        perform count(*) from postbus_data.parse_ack_ids(tokens);
    end if;
    return finished;
end
$$;

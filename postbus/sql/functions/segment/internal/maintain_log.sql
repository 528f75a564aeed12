create or replace function postbus_data.maintain_log(stream_id integer)
returns integer
language plpgsql
volatile
as $$
/*
Take the maintenance steps that are due on one stream.

A roll takes two calls, because the next segment must be committed before publishers are pointed at it: one call prepares it,
and a later transaction advances the register. A crash may follow any step: what the register says is recorded in the next call,
and a bound that is recorded late is only more conservative.

Touches  segment (insert, update, delete), the layout register; creates and drops segments' tables.
Locks    the stream's maintenance mutex; returns 0 at once when another session holds it.
*/
declare
    sequence regclass := to_regclass('postbus_data.seq_' || stream_id);
    step_count integer := 0;
begin
    perform postbus_data.check_isolation();
    if sequence is null or not pg_try_advisory_xact_lock(postbus_data.consumer_lock_class(0), stream_id) then
        return 0;
    end if;
    step_count := postbus_data.repair_layout(stream_id) + postbus_data.seal_segments(stream_id, sequence);
    step_count := step_count + postbus_data.advance_segment(stream_id, sequence);
    step_count := step_count + postbus_data.refresh_levels(stream_id);
    step_count := step_count + postbus_data.maintain_dedup(stream_id, sequence);
    step_count := step_count + postbus_data.expire_consumers(stream_id);
    step_count := step_count + postbus_data.apply_retention(stream_id);
    step_count := step_count + postbus_data.drop_purged_segments(stream_id);
    step_count := step_count + postbus_data.drop_unneeded(stream_id);
    step_count := step_count + postbus_data.compact_segments(stream_id, sequence);
    return step_count;
end
$$;

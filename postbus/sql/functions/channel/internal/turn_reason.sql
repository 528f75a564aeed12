create or replace function postbus_data.turn_reason(turn postbus_data.turn, now_at timestamptz)
returns text
language sql
immutable
as $$
/* Why a message waits whose channel has a turn. */
    select case
        when turn.ready_at <= now_at and turn.ready_at > '-infinity' then 'its channel waits for its turn'
        when turn.limited_by = 'concurrency' then 'its channel has as many messages in flight as it may'
        when turn.limited_by = 'rate' then 'its channel has used up its rate'
        when turn.limited_by = 'paused' then 'its channel is paused'
        else 'its channel waits for its turn'
    end
$$;

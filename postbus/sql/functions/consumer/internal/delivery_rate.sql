create or replace function postbus_data.delivery_rate(state postbus_data.sweep_state, positions bigint, now_at timestamptz)
returns double precision
language sql
volatile
as $$
/* How many messages a second were given out since a sweep, about; 0 when there was none. positions: see position_sum. */
    select case
        when state.swept_to > '-infinity' then greatest(
            0,
            (positions - state.position_sum) / 1024.0::double precision / greatest(0.001, extract(epoch from now_at - state.swept_to))
        )
        else 0
    end
$$;

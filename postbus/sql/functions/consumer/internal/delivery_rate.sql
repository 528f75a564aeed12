create or replace function postbus_data.delivery_rate(state postbus_data.sweep_state, positions bigint, now_at timestamptz)
returns double precision
language sql
volatile
as $$
/* About how many messages per second were delivered since a sweep; 0 without a sweep. For positions see position_sum. */
    select case
        when state.swept_to > '-infinity' then greatest(
            0,
            (positions - state.position_sum) / 1024.0::double precision / greatest(0.001, extract(epoch from now_at - state.swept_to))
        )
        else 0
    end
$$;

create or replace function postbus_data.delivery_rate(mark postbus_data.position, positions bigint, now_at timestamptz)
returns double precision
language sql
volatile
as $$
/* How many messages a second were given out since a mark of the sweep, about; 0 when there is none. positions: see position_sum. */
    select case
        when mark.read_to_seq > 0 then greatest(
            0,
            (positions - mark.expired_count) / 1024.0::double precision / greatest(0.001, extract(epoch from now_at) - mark.read_to_seq / 1000000.0)
        )
        else 0
    end
$$;

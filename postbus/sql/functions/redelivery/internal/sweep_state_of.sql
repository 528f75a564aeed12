create or replace function postbus_data.sweep_state_of(reader postbus_data.consumer)
returns postbus_data.sweep_state
language plpgsql
volatile
as $$
/* The time up to which a consumer was swept; -infinity if never. */
declare
    state postbus_data.sweep_state;
begin
    select s.* into state
    from postbus_data.sweep_state as s
    where s.consumer_id = reader.id
        and s.epoch = reader.epoch
    order by s.swept_to desc
    limit 1;
    if state.swept_to is null then
        state := row(reader.id, reader.epoch, '-infinity', '-infinity', '-infinity', 0, 0, 0);
    end if;
    return state;
end
$$;

create or replace function postbus_data.channel_position_of(reader postbus_data.consumer, partition integer)
returns postbus_data.channel_position
language plpgsql
volatile
as $$
/* Where a consumer by channel is with its turns in a partition. */
#variable_conflict use_variable
declare
    state postbus_data.channel_position;
begin
    select p.*
    into state
    from postbus_data.channel_position as p
    where p.consumer_id = reader.id
        and p.epoch = reader.epoch
        and p.partition = partition
    order by p.n desc
    limit 1;
    if state.n is null then
        state := row(reader.id, reader.epoch, partition, 0, '{}'::bigint[], 0, 0, '-infinity'::timestamptz, false);
    end if;
    return state;
end
$$;

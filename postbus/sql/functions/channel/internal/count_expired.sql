create or replace function postbus_data.count_expired(reader postbus_data.consumer, place postbus_data.position, expired bigint[])
returns postbus_data.position
language plpgsql
volatile
as $$
/* Count messages whose time to live was over when they were reached, or make them dead letters, as the consumer says. */
declare
    message_seq bigint;
begin
    foreach message_seq in array coalesce(expired, '{}') loop
        place.expired_count := place.expired_count + 1;
        if reader.on_expired = 'bury' then
            perform postbus_data.add_dead_letter(reader, place.partition, message_seq, 0, 'its time to live was over');
        end if;
    end loop;
    return place;
end
$$;

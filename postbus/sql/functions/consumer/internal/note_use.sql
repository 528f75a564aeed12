create or replace function postbus_data.note_use(reader postbus_data.consumer, positions bigint default null)
returns void
language plpgsql
volatile
as $$
/*
Record from time to time that a consumer with expire_after is in use. Two calls at once leave two rows, of which the later counts.

positions  the sum of its positions, if known.
Touches    consumer_use (insert, delete).
*/
declare
    now_at timestamptz := clock_timestamp();
    last_use postbus_data.consumer_use := postbus_data.last_use_of(reader);
begin
    if positions is null and last_use.used_at > now_at - least(interval '1 minute', reader.expire_after / 10) then
        return;
    end if;
    delete from postbus_data.consumer_use as u
    where u.consumer_id = reader.id
        and u.epoch = reader.epoch
        and u.used_at <= last_use.used_at;
    insert into postbus_data.consumer_use (consumer_id, epoch, used_at, position_sum)
    values (reader.id, reader.epoch, now_at, coalesce(positions, last_use.position_sum, 0))
    on conflict do nothing;
end
$$;

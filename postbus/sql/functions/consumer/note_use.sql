create or replace function postbus_data.note_use(reader postbus_data.consumer, positions bigint default null)
returns void
language plpgsql
volatile
as $$
/*
Remember that a consumer with expire_after is used, now and then only. Two that do so at once leave two rows, of which the later counts.

positions  the sum of its positions, if known.
Touches    position (insert, delete).
*/
declare
    now_at bigint := extract(epoch from clock_timestamp()) * 1000000;
    last_use postbus_data.position := postbus_data.last_use(reader);
begin
    if positions is null and last_use.read_to_seq > now_at - least(60, extract(epoch from reader.expire_after) / 10) * 1000000 then
        return;
    end if;
    delete from postbus_data.position as p
    where p.consumer_id = reader.id
        and p.epoch = reader.epoch
        and p.partition = -5
        and p.read_to_seq <= last_use.read_to_seq;
    insert into postbus_data.position (consumer_id, epoch, partition, read_to_seq, horizon, pending_bound)
    values (reader.id, reader.epoch, -5, now_at, coalesce(positions, last_use.horizon, 0), 0)
    on conflict do nothing;
end
$$;

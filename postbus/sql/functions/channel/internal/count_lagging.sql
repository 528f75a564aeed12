create or replace function postbus_data.count_lagging(reader postbus_data.consumer, out lagging bigint, out is_exact boolean)
language plpgsql
stable
set enable_seqscan = off
set enable_bitmapscan = off
as $$
/*
How many messages a consumer by channel has passed over, to be delivered when it is their channel's turn. Exact up to 1,000 messages; beyond, each channel is
taken to be as dense as its first messages, and of more than 200 channels the others to be like the first ones.
*/
#variable_conflict use_variable
declare
    waiting record;
    here record;
    looked_at bigint := 0;
    channels bigint;
begin
    lagging := 0;
    is_exact := true;
    for waiting in
        select t.partition, t.channel, t.after_seq
        from postbus_data.turn as t
        where t.consumer_id = reader.id
            and t.epoch = reader.epoch
        limit 200
    loop
        select c.* into here from postbus_data.count_channel(reader, waiting.partition, waiting.channel, waiting.after_seq, 1000) as c;
        lagging := lagging + here.estimate;
        is_exact := is_exact and here.message_count < 1000;
        looked_at := looked_at + 1;
    end loop;
    if looked_at = 200 then
        select count(*) into channels from postbus_data.turn as t where t.consumer_id = reader.id and t.epoch = reader.epoch;
        is_exact := is_exact and channels = looked_at;
        lagging := lagging * channels / looked_at;
    end if;
end
$$;

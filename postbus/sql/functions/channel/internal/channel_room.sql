create or replace function postbus_data.channel_room(
    reader postbus_data.consumer,
    channel text,
    in_flight text[],
    quantum integer,
    has_limits boolean,
    now_at timestamptz
)
returns postbus_data.channel_room
language plpgsql
volatile
as $$
/*
How many messages of a channel a consumer may lease now, by the channel's limits as they are now. Hot.

in_flight  the channels of the messages that are leased, one by one.
quantum    of a turn with weight 1; null for a consumer that is not fair.

The rate is GCRA: each message uses a step, and as many as the burst may be used at once.
Its caller holds the partition's mutex, and has read in_flight under it.
*/
#variable_conflict use_variable
declare
    here postbus_data.channel_room;
    limits postbus_data.channel;
    free_at timestamptz;
begin
    here.room := 2147483647;
    here.quantum := quantum;
    if not has_limits then
        return here;
    end if;
    limits := postbus_data.channel_limits(reader.stream_id, channel);
    if limits.pattern is null then
        return here;
    end if;
    here.quantum := quantum * limits.weight;
    if limits.paused then
        here.room := 0;
        here.limited_by := 'paused';
        here.ready_at := 'infinity';
        return here;
    end if;
    if limits.max_concurrency is not null then
        here.max_concurrency := limits.max_concurrency;
        here.room := greatest(0, limits.max_concurrency - cardinality(array_positions(in_flight, channel)));
        if here.room = 0 then
            here.limited_by := 'concurrency';
            here.ready_at := '-infinity';
            return here;
        end if;
    end if;
    if limits.max_rate is not null then
        here.step := limits.per / limits.max_rate;
        here.tat := greatest(
            now_at,
            (
                select p.tat
                from postbus_data.channel_pace as p
                where p.consumer_id = reader.id
                    and p.channel = channel
                order by p.tat desc
                limit 1
            )
        );
        -- When the next message may go.
        free_at := here.tat - (limits.burst - 1) * here.step;
        if free_at > now_at then
            here.room := 0;
            here.limited_by := 'rate';
            here.ready_at := free_at;
            return here;
        end if;
        here.room := least(here.room, 1 + floor(extract(epoch from now_at - free_at) / extract(epoch from here.step))::integer);
    end if;
    return here;
end
$$;

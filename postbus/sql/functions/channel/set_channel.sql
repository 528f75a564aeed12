create or replace function postbus.set_channel(
    stream text,
    pattern text,
    max_concurrency integer default null,
    max_rate integer default null,
    per interval default interval '1 second',
    burst integer default 1,
    weight integer default 1,
    paused boolean default false
)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Set the limits of the channels of a stream whose names match a pattern, in place of those that the pattern had. They count from the next receive on; of
several patterns that match a channel, only the most specific counts, and a channel that none matches has no limits.

pattern          the name of a channel, or a pattern of names: "*" is one token, ">" one or more at the end.
max_concurrency  how many messages of a channel a consumer may have in flight at once. What is in flight already may be finished.
max_rate, per    how many it gets of a channel in each such time, retries included.
burst            how many it gets at once after a pause: in any time t at most burst + max_rate × t / per. With 1, they are evenly spaced.
weight           how much of a turn a channel has, where a consumer is fair.
paused           it gets none.

They hold for each consumer by itself, and not for groups.

Raises   PB400 for a limit out of range or a pattern that is not allowed, PB404 for an unknown stream, PB409 for a stream without channels, or with a consumer
         in another order than none.
Touches  channel (insert or update), turn (update); as go_by_channel for consumers that are not by channel yet.
Locks    the stream's row and the mutexes of the stream's consumers until the transaction ends; keep it short.
*/
#variable_conflict use_variable
declare
    limited integer := postbus_data.stream_id(stream);
    reader record;
    problem text;
begin
    problem := case
        when max_concurrency not between 1 and 1000000 then format('max_concurrency = %s is not between 1 and 1000000', max_concurrency)
        when max_rate not between 1 and 1000000 then format('max_rate = %s is not between 1 and 1000000', max_rate)
        when (per between interval '1 millisecond' and interval '30 days') is not true
            then format('per = %s is not between 1 millisecond and 30 days', coalesce(per::text, 'null'))
        when max_rate is not null and per / max_rate < interval '1 microsecond' then 'max_rate is more than one message per microsecond'
        when (burst between 1 and 1000000) is not true then format('burst = %s is not between 1 and 1000000', coalesce(burst::text, 'null'))
        when (weight between 1 and 1000) is not true then format('weight = %s is not between 1 and 1000', coalesce(weight::text, 'null'))
        when paused is null then 'paused cannot be null'
        when pattern is null then 'pattern cannot be null'
    end;
    if problem is not null then
        raise exception using errcode = 'PB400', message = problem;
    end if;
    if (select s.channel_tokens is null from postbus_data.stream as s where s.id = limited) then
        raise exception using
            errcode = 'PB409',
            message = format('stream "%s" has no channels', stream),
            hint = 'channel_tokens, how many leading tokens of the key name the channel, is set when a stream is created';
    end if;
    -- No consumer is created meanwhile, see add_consumer.
    perform from postbus_data.stream as s where s.id = limited for no key update;
    perform postbus_data.check_channel_order(c.ordering, c.is_group, stream, c.name) from postbus_data.consumer as c where c.stream_id = limited;
    insert into postbus_data.channel as c (stream_id, pattern, regex, rank, max_concurrency, max_rate, per, burst, weight, paused)
    values (
        limited, pattern, case when pattern ~ '[*>]' then postbus_data.pattern_regex(pattern) end, postbus_data.channel_rank(pattern), max_concurrency,
        max_rate, per, burst, weight, paused
    )
    on conflict on constraint channel_pkey do update
    set max_concurrency = excluded.max_concurrency,
        max_rate = excluded.max_rate,
        per = excluded.per,
        burst = excluded.burst,
        weight = excluded.weight,
        paused = excluded.paused;
    for reader in select c.id from postbus_data.consumer as c where c.stream_id = limited and not c.is_group and not c.by_channel order by c.id loop
        perform postbus_data.go_by_channel(reader.id);
    end loop;
    perform postbus_data.release_channels(limited, pattern);
end
$$;

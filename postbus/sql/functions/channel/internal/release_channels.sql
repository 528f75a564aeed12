create or replace function postbus_data.release_channels(stream_id integer, pattern text)
returns void
language plpgsql
volatile
as $$
/*
Let all channels that match a pattern, and that a limit holds, be looked at again by the next claim, because their limits have changed.

Touches  turn (update).
Locks    the mutexes of the partitions of all consumers by channel, until the transaction ends: a claim that is under way ends under the old limits.
*/
#variable_conflict use_variable
declare
    reader postbus_data.consumer;
    regex text := postbus_data.pattern_regex(pattern);
begin
    for reader in
        select c.* from postbus_data.consumer as c where c.stream_id = stream_id and c.by_channel order by c.id
    loop
        perform pg_advisory_xact_lock(postbus_data.consumer_lock_class(reader.id), p)
        from generate_series(reader.partition_base, reader.partition_base + reader.partition_count - 1) as p;
        update postbus_data.turn as t
        set ready_at = clock_timestamp()
        where t.consumer_id = reader.id
            and t.epoch = reader.epoch
            and t.ready_at is not null
            and t.channel ~ regex;
    end loop;
end
$$;

create or replace function postbus_data.apply_retention(stream_id integer)
returns integer
language plpgsql
volatile
as $$
/*
Apply a stream's retention: move its start, and decide whether it accepts new messages.

Its caller holds the stream's maintenance mutex. If it is killed, either the old start or the new one is in force.

Returns  how many things changed.
Touches  stream (update); replaces the stream's publishing functions when it becomes full, or is no longer full.
*/
declare
    stream postbus_data.stream;
    horizon bigint;
    edge bigint;
    room_edge bigint;
    keep_edge bigint;
    is_full boolean;
    changed integer := 0;
begin
    select s.* into stream from postbus_data.stream as s where s.id = stream_id;
    if num_nonnulls(stream.retain_up_to, stream.max_messages, stream.max_storage) = 0 and not stream.until_acked then
        return 0;
    end if;
    horizon := postbus_data.horizon_of(stream_id);

    -- What must stay, whatever the limits say.
    select min(postbus_data.finished_edge(c, horizon))
    into keep_edge
    from postbus_data.consumer as c
    where c.stream_id = apply_retention.stream_id
        and (c.keep_unread or stream.until_acked);
    keep_edge := least(
        keep_edge,
        horizon + 1,
        -- What the history still refers to.
        (
            select min((select h.first_seq from postbus_data.history as h where h.consumer_id = c.id order by h.first_seq limit 1))
            from postbus_data.consumer as c
            where c.stream_id = apply_retention.stream_id
                and c.keep_history is not null
                and stream.until_acked
        )
    );
    if stream.retain_at_least is not null then
        keep_edge := least(keep_edge, postbus_data.seq_since(stream_id, clock_timestamp() - stream.retain_at_least));
    end if;

    if stream.retain_up_to is not null then
        edge := postbus_data.seq_before(stream_id, clock_timestamp() - stream.retain_up_to) + 1;
    end if;
    if stream.until_acked then
        edge := greatest(edge, keep_edge);
    end if;
    room_edge := postbus_data.room_edge(stream, horizon);
    if stream.when_full = 'evict' then
        edge := greatest(edge, room_edge);
    end if;
    if least(edge, keep_edge) > stream.start_seq and edge is not null then
        edge := least(edge, keep_edge);
        stream.start_seq := postbus_data.move_start(stream_id, edge);
        changed := 1;
    end if;

    is_full := coalesce(room_edge > stream.start_seq, false);
    if is_full <> stream.is_full then
        update postbus_data.stream as s set is_full = not s.is_full where s.id = stream_id;
        perform postbus_data.create_publish_functions(stream_id);
        changed := changed + 1;
    end if;
    return changed;
end
$$;

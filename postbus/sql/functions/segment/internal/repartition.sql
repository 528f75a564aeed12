create or replace function postbus_data.repartition(stream_id integer, partition_count integer)
returns void
language plpgsql
volatile
as $$
/*
Prepare a segment with another number of partitions: publishers are pointed at it when maintenance begins it.

Raises   PB409 when partitions cannot be numbered any further.
Touches  segment (insert, update); creates its table.
Locks    the stream's maintenance mutex, until the transaction ends.
*/
#variable_conflict use_variable
declare
    layout bigint;
    new_base integer;
begin
    perform pg_advisory_xact_lock(postbus_data.consumer_lock_class(0), stream_id);
    layout := postbus_data.sequence_value('postbus_data.layout_' || stream_id::text);
    new_base := postbus_data.layout_base(layout);
    if partition_count <> postbus_data.layout_count(layout) then
        new_base := new_base + postbus_data.layout_count(layout);
    end if;
    if new_base + partition_count > 16777215 then
        raise exception using errcode = 'PB409', message = 'this stream''s partitions cannot be renumbered any further', hint = 'create another stream';
    end if;
    -- Perhaps one is prepared already.
    update postbus_data.segment as s
    set partition_base = new_base,
        partition_count = partition_count
    where s.stream_id = stream_id
        and s.number = postbus_data.layout_segment(layout) + 1;
    if not found and partition_count <> postbus_data.layout_count(layout) then
        perform postbus_data.prepare_segment(stream_id, postbus_data.layout_segment(layout) + 1, new_base, partition_count);
    end if;
end
$$;

create or replace function postbus_data.create_receive_function(stream_id integer)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
/*
Write the function postbus_data.ack_and_receive_<stream id>, which acks and receives as postbus_data.ack_and_receive does.

It goes the shortest way when nothing has to be decided about messages of the newest segment, which is nearly always so: those of one partition that has
enough of them, or else what there is in several (gathering). Few statements, planned once for a session (docs/decisions/0008). Whatever it does not know
or like it leaves to receive_with_decisions. Written anew when the stream is created or altered, when a new segment is begun and
when a priority is used first.
*/
declare
    stream postbus_data.stream;
    names jsonb;
    layout bigint := pg_sequence_last_value(to_regclass('postbus_data.layout_' || stream_id));
    has_levels boolean := postbus_data.has_levels(layout);
begin
    select s.* into stream from postbus_data.stream as s where s.id = stream_id;
    names := jsonb_build_object(
        'stream_id', stream.id,
        'stream_name', quote_literal(stream.name),
        'segment', postbus_data.layout_segment(layout),
        'log_table', postbus_data.log_table(stream.id, postbus_data.layout_segment(layout)),
        'layout', layout,
        'partition_base', postbus_data.layout_base(layout),
        'partition_count', postbus_data.layout_count(layout),
        -- Not all of them at once, so that another worker finds some too.
        'partitions_at_once', least(16, (postbus_data.layout_count(layout) + 1) / 2),
        -- So many messages fit into an array, however large each is.
        'array_limit', least(1000, 900000000 / stream.max_message_bytes),
        -- Receives of a single partition take turns. Of several, a receive takes one that is free.
        'or_wait', case when postbus_data.layout_count(layout) = 1 then ' or postbus_data.wait_for_partition(reader.id, chosen)' else '' end,
        -- Groups read levels side by side, by a way of their own.
        'is_plain', case when stream.one_message_per_key then 'false' when has_levels then 'not c.is_group' else 'true' end,
        'reader_of_levels', case when has_levels then E'\n        c.ageing,\n        clock_timestamp() as now_at,' else '' end,
        'data_column', case stream.data_type when 'bytes' then 'bytes' else 'data' end,
        'data_type', case stream.data_type when 'bytes' then 'bytea' else 'text' end,
        -- Redeliveries of urgent messages, by the levels that were in use when this was written.
        'has_urgent_due', coalesce(
            (
                select string_agg(format('postbus_data.has_due(reader.id, reader.epoch, %s)', lane), ' or ')
                from unnest(postbus_data.lanes(stream_id)) as lane
                where lane >= 500000000
            ),
            'false'
        ),
        -- Failed messages of an older layout hold their keys too.
        'no_older_failures', case
            when postbus_data.layout_base(layout) > 0 then format(
                ' and not exists (select from postbus_data.waiting as w where w.consumer_id = reader.id and w.partition < %s)',
                postbus_data.layout_base(layout)
            )
            else ''
        end
    );
    execute postbus_data.render(
        postbus_data.ack_and_receive_template(),
        names || jsonb_build_object(
            'ack_and_receive_from_many', postbus_data.render(postbus_data.ack_and_receive_from_many_template(), names),
            'ack_and_receive_urgent', case when has_levels then postbus_data.render(postbus_data.ack_and_receive_urgent_template(), names) else '' end
        )
    );
end
$$;

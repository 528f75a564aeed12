create or replace function postbus_data.stream_objects(stream_id integer)
returns table (kind text, id oid, rights text[])
language sql
volatile
as $$
/* The functions of a stream and the tables of its log, each with the rights that allow a role to use it. */
    select 'table', to_regclass('postbus_data.log_' || stream_id || '_' || g.number)::oid, array['consume', 'read']
    from postbus_data.segment as g
    where g.stream_id = stream_objects.stream_id
        and to_regclass('postbus_data.log_' || stream_id || '_' || g.number) is not null
    union all
    select 'function', to_regproc('postbus_data.' || o.name)::oid, o.rights
    from (
        values
            ('publish_' || stream_id, array['publish']),
            ('publish_many_' || stream_id, array['publish']),
            ('ack_and_receive_' || stream_id, array['consume']),
            ('ack_' || stream_id, array['consume'])
        union all
        select f.kind || '_' || stream_id || '_' || g.number, '{}'::text[]
        from postbus_data.segment as g
        cross join unnest(array['claim', 'scan_channels', 'read_channel', 'fetch_channels']) as f (kind)
        where g.stream_id = stream_objects.stream_id
    ) as o (name, rights)
    where to_regproc('postbus_data.' || o.name) is not null
$$;

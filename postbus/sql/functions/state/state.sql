create or replace function postbus.state(
    stream text,
    key text default null,
    key_pattern text default null,
    after_key text default '',
    max_messages integer default 1000,
    expected_type text default null,
    caller postbus.caller default postbus.current_caller()
)
returns setof postbus.message
language plpgsql
volatile
security definer
set enable_seqscan = off
set search_path = pg_catalog, pg_temp
as $$
/*
The current version of each key of a stream that keeps one message per key, in order of the keys: one key, the keys that match a
pattern, or all, in pages.

Raises   PB400 for an argument out of range or an invalid pattern, PB403 without the right to consume or read, PB404 for an
         unknown stream, PB409 when the stream does not keep one message per key or has another data type.
*/
#variable_conflict use_variable
declare
    source postbus_data.stream;
    key_regex text := postbus_data.pattern_regex(key_pattern);
    versions text;
begin
    select s.* into source from postbus_data.stream as s where s.id = postbus_data.permitted_stream(caller, stream, 'consume', 'read');
    if not source.one_message_per_key then
        raise exception using
            errcode = 'PB409',
            message = format('stream "%s" does not keep one message per key', stream),
            schema = stream,
            constraint = 'no_state',
            hint = 'such a stream is created with one_message_per_key; read any stream with postbus.read';
    end if;
    if (max_messages between 1 and 10000) is not true then
        raise exception using errcode = 'PB400', message = format('max_messages = %s is not between 1 and 10000', max_messages);
    end if;
    if expected_type <> source.data_type then
        raise exception using errcode = 'PB409', message = format('stream "%s" holds %s, not %s', stream, source.data_type, expected_type);
    end if;
    versions := format(
        'select t.key, t.seq, t.segment, t.partition
        from postbus_data.state_%s as t
        where t.seq > 0 and not t.is_deleted and t.key > $1 and ($2 is null or t.key = $2) and ($3 is null or t.key ~ $3)
        order by t.key
        limit $4',
        source.id
    );
    return query execute (
        select format(
            'with versions as materialized (%s) select m.* from (%s) as m order by m.key',
            versions,
            string_agg(
                format(
                    'select l.seq, l.partition, l.key, %s, l.headers, l.published_at, null::text as resume, postbus.priority_of(l.partition) as priority
                    from versions as v
                    join %s as l on l.partition = v.partition and l.seq = v.seq
                    where v.segment = %s',
                    case when source.data_type = 'bytes' then 'null::text as data, l.data as bytes' else 'l.data::text as data, null::bytea as bytes' end,
                    postbus_data.log_table(g.stream_id, g.number),
                    g.number
                ),
                ' union all '
            )
        )
        from postbus_data.segment as g
        where g.stream_id = source.id
    )
    using after_key, key, key_regex, max_messages;
end
$$;

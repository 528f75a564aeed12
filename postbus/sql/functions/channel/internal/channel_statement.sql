create or replace function postbus_data.channel_statement(stream postbus_data.stream, name text, source text)
returns text
language sql
immutable
as $$
/*
The query that looks at messages of a stream with channels; it returns fresh_messages.

name    scan_channels or read_channel: see the templates.
source  the table or query that has the messages.

Its parameters are: $1 the consumer, $2 the partition, $3 and $4 the range of seqs, $5 how many messages to look at, $6 how many to take, $7 the channel (of
read_channel), $8 the channels of messages in flight, $9 the time, $10 whether there are limits, $11 the quantum.
*/
    select postbus_data.render(
        case name when 'scan_channels' then postbus_data.scan_channels_template() else postbus_data.read_channel_template() end,
        jsonb_build_object(
            'log_table', source,
            'channel', postbus_data.channel_expression('l.key', stream.channel_tokens),
            'matches_data', case stream.data_type
                when 'json' then $match$(
                $1.filter_data is null
                or coalesce(jsonb_path_query_first(postbus_data.as_jsonb(l.data::text), $1.filter_data, '{}', true), 'false') not in ('false', 'null')
            )$match$
                else 'true'
            end
        )
    )
$$;

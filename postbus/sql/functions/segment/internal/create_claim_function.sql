create or replace function postbus_data.create_claim_function(stream_id integer, number integer, data_type text)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
/*
Write the function postbus_data.claim_<stream id>_<number>, which leases messages of one partition in one segment, or only reads them.

Its queries are planned once for a session. Planned at each receive, reading took ten times as long (docs/decisions/0008).
It lives and goes with the segment's table.
*/
declare
    stream postbus_data.stream;
begin
    select s.* into stream from postbus_data.stream as s where s.id = stream_id;
    execute postbus_data.render(
        postbus_data.claim_segment_template(),
        jsonb_build_object(
            'stream_id', stream_id,
            'segment', number,
            'log_table', postbus_data.log_table(stream_id, number),
            -- So many messages fit into an array, however large each is.
            'array_limit', 900000000 / stream.max_message_bytes,
            'is_unversioned', not stream.one_message_per_key,
            'data_column', case data_type when 'bytes' then 'bytes' else 'data' end,
            'data_type', case data_type when 'bytes' then 'bytea' else 'text' end,
            'matches_data', case data_type
                when 'json' then $match$(
                reader.filter_data is null
                or coalesce(jsonb_path_query_first(postbus_data.as_jsonb(l.data::text), reader.filter_data, '{}', true), 'false') not in ('false', 'null')
            )$match$
                else 'true'
            end,
            'is_current', case
                when stream.one_message_per_key
                then format('exists (select from postbus_data.state_%s as t where t.key = l.key and t.seq = l.seq)', stream_id)
                else 'true'
            end
        )
    );
    if stream.channel_tokens is not null then
        perform postbus_data.create_channel_functions(stream, number);
    end if;
end
$$;

create or replace function postbus_data.create_channel_functions(stream postbus_data.stream, number integer)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
/*
Write the functions that read one segment of a stream with channels, planned once for a session as the segment's claim function is:

postbus_data.scan_channels_<stream id>_<number>   looks at new messages of a partition
postbus_data.read_channel_<stream id>_<number>    looks at the next messages of one channel
postbus_data.fetch_channels_<stream id>_<number>  reads messages by their seqs

The first two have the arguments of channel_statement.
*/
#variable_conflict use_variable
declare
    statement text;
    name text;
begin
    foreach name in array array['scan_channels', 'read_channel'] loop
        execute format(
            'create or replace function postbus_data.%s_%s_%s(
                postbus_data.consumer, integer, bigint, bigint, integer, integer, text, text[], timestamptz, boolean, integer
            )
            returns postbus_data.fresh_messages
            language plpgsql
            volatile
            as $body$
            declare
                found_messages postbus_data.fresh_messages;
            begin
                select m.* into found_messages from (%s) as m;
                return found_messages;
            end
            $body$',
            name, stream.id, number, postbus_data.channel_statement(stream, name, postbus_data.log_table(stream.id, number))
        );
    end loop;
    execute format(
        'create or replace function postbus_data.fetch_channels_%s_%s(partition integer, seqs bigint[])
        returns postbus_data.batch
        language plpgsql
        volatile
        as $body$
        #variable_conflict use_variable
        declare
            batch postbus_data.batch;
        begin
            select array_agg(m.seq), array_agg(m.key), array_agg(m.data), array_agg(m.headers), array_agg(m.published_at)
            into batch.seqs, batch.keys, batch.%s, batch.headers, batch.published_at
            from (
                select l.seq, l.key, l.data::%s as data, l.headers, l.published_at
                from %s as l
                where l.partition = partition
                    and l.seq = any (seqs)
                order by l.seq
            ) as m;
            batch.partition := partition;
            return batch;
        end
        $body$',
        stream.id, number, case stream.data_type when 'bytes' then 'bytes' else 'data' end,
        case stream.data_type when 'bytes' then 'bytea' else 'text' end, postbus_data.log_table(stream.id, number)
    );
end
$$;

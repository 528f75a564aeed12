create or replace function postbus_data.prepare_segment(stream_id integer, number integer, partition_base integer, partition_count integer)
returns void
language plpgsql
as $$
/*
Create the table of a segment. Publishers write to it once the layout register names it, which must not happen before
this transaction has committed: until then they could not see the table.

Touches  segment (insert); creates postbus_data.log_<stream id>_<number> and its claimer.
*/
declare
    data_type text;
    channel_tokens integer;
begin
    select case s.data_type when 'bytes' then 'bytea' else s.data_type end, s.channel_tokens
    into data_type, channel_tokens
    from postbus_data.stream as s
    where s.id = prepare_segment.stream_id;

    -- Wide columns last. The key's collation is C: comparisons are by byte, as tokens and prefixes need.
    execute format(
        'create table postbus_data.log_%1$s_%2$s (
            seq bigint not null,
            published_at timestamptz not null,
            partition integer not null,
            key text collate "C",
            data %3$s not null,
            headers jsonb,
            expires_at timestamptz,
            primary key (partition, seq)
        )',
        stream_id, number, data_type
    );
    if channel_tokens is not null then
        -- To read one channel.
        execute format('create index on %s ((%s), seq)', postbus_data.log_table(stream_id, number), postbus_data.channel_expression('key', channel_tokens));
    end if;
    perform postbus_data.create_claim_function(stream_id, number, case data_type when 'bytea' then 'bytes' else data_type end);
    insert into postbus_data.segment (stream_id, number, partition_base, partition_count, after_seq)
    values (
        stream_id, number, partition_base, partition_count,
        pg_sequence_last_value(to_regclass('postbus_data.seq_' || stream_id))
    );
    perform postbus_data.apply_grants(stream_id);
end
$$;

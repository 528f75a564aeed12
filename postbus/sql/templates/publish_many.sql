-- What postbus.publish_many does, for one stream whose table, partitions and limits are known. See create_publish_functions.
create or replace function postbus_data.publish_many_{stream_id}(keys text[], data {data_type}[], headers jsonb[])
returns bigint[]
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $body$
#variable_conflict use_variable
declare
    message_count integer := cardinality(data);
    published_at timestamptz;
    seqs bigint[];
begin
    if {is_refused}
        or (
            case
                when pg_current_xact_id_if_assigned() is null
                then pg_try_advisory_xact_lock_shared({lock_class}, postbus_data.publisher_lock_key(pg_sequence_last_value('postbus_data.seq_{stream_id}'::regclass)))
                else postbus_data.lock_horizon({stream_id}, 'postbus_data.seq_{stream_id}'::regclass)
            end
        ) is not true
        or (pg_sequence_last_value('postbus_data.layout_{stream_id}'::regclass) = {layout}::bigint) is not true
        or (message_count between 1 and 10000) is not true
        or (cardinality(keys) = message_count) is not true
        or array_ndims(keys) + array_ndims(data) > 2
        or (postbus_data.tokens_are_valid(array_to_string(keys, '.'::text)) is false and num_nonnulls(variadic keys) > 0)
        or headers is not null
        or (
            select max(length(m.key)) > 255
                or count(m.data) < message_count
                or max(octet_length(m.data)) > {max_message_bytes}
            from (select unnest(keys) as key, unnest(data) as data) as m
        )
    then
        return postbus.publish_many({stream_name}, keys, {data_argument} => data, headers => headers);
    end if;
    select array_agg(nextval('postbus_data.seq_{stream_id}'::regclass)) into seqs from generate_series(1, message_count);
    if pg_sequence_last_value('postbus_data.layout_{stream_id}'::regclass) <> {layout}::bigint then
        -- See publish. These numbers stay unused.
        return postbus.publish_many({stream_name}, keys, {data_argument} => data);
    end if;
    published_at := clock_timestamp();
    insert into {log_table} (seq, published_at, partition, key, data)
    select
        m.seq,
        published_at,
        {partition_base} + coalesce(mod((get_byte(m.hash, 0) << 16) | (get_byte(m.hash, 1) << 8) | get_byte(m.hash, 2), {partition_count}), mod(m.seq, {partition_count}::bigint)::integer),
        m.key,
        {contents}
    from (
        select u.*, sha256(convert_to({channel}, 'UTF8'::name)) as hash
        from (select unnest(seqs) as seq, unnest(keys) as key, unnest(data) as data) as u
        offset 0
    ) as m;
    return seqs;
end
$body$;

-- What postbus.publish does, for one stream whose table, partitions and limits are known. See create_publish_functions.
create or replace function postbus_data.publish_{stream_id}(key text, data {data_type}, headers jsonb)
returns bigint
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $body$
#variable_conflict use_variable
declare
    hash bytea := sha256(convert_to({channel}, 'UTF8'::name));
    seq bigint;
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
        or (length(key) <= 255 and postbus_data.tokens_are_valid(key)) is false
        or (octet_length(data) <= {max_message_bytes}) is not true
        or headers is not null
    then
        return postbus.publish({stream_name}, key, {data_argument} => data, headers => headers);
    end if;
    seq := nextval('postbus_data.seq_{stream_id}'::regclass);
    if pg_sequence_last_value('postbus_data.layout_{stream_id}'::regclass) <> {layout}::bigint then
        -- See publish. This number stays unused.
        return postbus.publish({stream_name}, key, {data_argument} => data);
    end if;
    insert into {log_table} (seq, published_at, partition, key, data)
    values (
        seq,
        clock_timestamp(),
        {partition_base} + coalesce(mod((get_byte(hash, 0) << 16) | (get_byte(hash, 1) << 8) | get_byte(hash, 2), {partition_count}), mod(seq, {partition_count}::bigint)::integer),
        key,
        {content}
    );
    return seq;
end
$body$;

-- Made from ../templates by `make generate`, for stream 1 with 8 partitions and segment 1; do not edit.
CREATE OR REPLACE FUNCTION postbus_data.publish_many_1(keys text[], data text[], headers jsonb[])
 RETURNS bigint[]
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
#variable_conflict use_variable
declare
    message_count integer := cardinality(data);
    published_at timestamptz;
    seqs bigint[];
begin
    if false
        or (
            case
                when pg_current_xact_id_if_assigned() is null
                then pg_try_advisory_xact_lock_shared(1073741825, postbus_data.publisher_lock_key(pg_sequence_last_value('postbus_data.seq_1'::regclass)))
                else postbus_data.lock_horizon(1, 'postbus_data.seq_1'::regclass)
            end
        ) is not true
        or (pg_sequence_last_value('postbus_data.layout_1'::regclass) = 34359738376::bigint) is not true
        or (message_count between 1 and 10000) is not true
        or (cardinality(keys) = message_count) is not true
        or array_ndims(keys) + array_ndims(data) > 2
        or (postbus_data.tokens_are_valid(array_to_string(keys, '.'::text)) is false and num_nonnulls(variadic keys) > 0)
        or headers is not null
        or (
            select max(length(m.key)) > 255
                or count(m.data) < message_count
                or max(octet_length(m.data)) > 8388608
            from (select unnest(keys) as key, unnest(data) as data) as m
        )
    then
        return postbus.publish_many('orders', keys, data => data, headers => headers);
    end if;
    select array_agg(nextval('postbus_data.seq_1'::regclass)) into seqs from generate_series(1, message_count);
    if pg_sequence_last_value('postbus_data.layout_1'::regclass) <> 34359738376::bigint then
        -- See publish. These numbers stay unused.
        return postbus.publish_many('orders', keys, data => data);
    end if;
    published_at := clock_timestamp();
    insert into postbus_data.log_1_1 (seq, published_at, partition, key, data)
    select
        m.seq,
        published_at,
        0 + coalesce(mod((get_byte(m.hash, 0) << 16) | (get_byte(m.hash, 1) << 8) | get_byte(m.hash, 2), 8), mod(m.seq, 8::bigint)::integer),
        m.key,
        m.data::json
    from (
        select u.*, sha256(convert_to(u.key, 'UTF8'::name)) as hash
        from (select unnest(seqs) as seq, unnest(keys) as key, unnest(data) as data) as u
        offset 0
    ) as m;
    return seqs;
end
$function$;
